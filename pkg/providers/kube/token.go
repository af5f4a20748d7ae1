package kube

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	tokenPrefix   = "k8s-aws-v1."
	tokenLifetime = 14 * time.Minute // EKS takes it for 15 from its date
)

// EKSToken makes tokens with which EKS knows an IAM identity in the named cluster. A token is a presigned STS request:
// making one needs credentials and no network. It lasts 14 minutes; the client asks for the next one after 10. The STS
// client must be of the cluster's region.
func EKSToken(client *sts.Client, cluster string, now func() time.Time) func(context.Context) (string, time.Time,
	error) {
	presigner := sts.NewPresignClient(client)
	return func(ctx context.Context) (string, time.Time, error) {
		made := now()
		req, err := presigner.PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
			o.ClientOptions = append(o.ClientOptions, sts.WithAPIOptions(
				addHeader("x-k8s-aws-id", cluster), addHeader("X-Amz-Expires", "60")))
		})
		if err != nil {
			return "", time.Time{}, fmt.Errorf("presign identity for cluster %s: %w", cluster, err)
		}
		if req.Method != http.MethodGet {
			return "", time.Time{}, fmt.Errorf("presign identity for cluster %s: method is %s, want GET", cluster,
				req.Method)
		}
		return tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(req.URL)), made.Add(tokenLifetime), nil
	}
}

func addHeader(name, value string) func(*middleware.Stack) error {
	return smithyhttp.AddHeaderValue(name, value)
}
