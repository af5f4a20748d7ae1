package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner.sh/pkg/nodeclaim/awserrors"
)

// authorityKey is the object of the catalog bucket that holds the certificate authority, as EKS prints it.
const (
	authorityKey = "cluster-ca"
	maxAuthority = 64 << 10 // bytes
)

// AuthorityStore keeps the cluster's certificate authority in the catalog bucket, for functions whose environment has
// an older one. Both calls may be repeated.
type AuthorityStore struct {
	S3     *s3.Client
	Bucket string
}

// ReadAuthority returns the stored authority, base64 of PEM; empty when there is none.
func (s AuthorityStore) ReadAuthority(ctx context.Context) (string, error) {
	if s.Bucket == "" {
		return "", nil
	}
	out, err := s.S3.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(s.Bucket), Key: aws.String(authorityKey)})
	switch code := awserrors.CodeOf(err); {
	case code == "NoSuchKey" || code == "AccessDenied": // who may not list is told the second for the first
		return "", nil
	case err != nil:
		return "", fmt.Errorf("get certificate authority from bucket %s: %w", s.Bucket, err)
	}
	defer out.Body.Close()
	b, err := io.ReadAll(io.LimitReader(out.Body, maxAuthority))
	if err != nil {
		return "", fmt.Errorf("read certificate authority from bucket %s: %w", s.Bucket, err)
	}
	return string(b), nil
}

// PutAuthority stores the authority.
func (s AuthorityStore) PutAuthority(ctx context.Context, bundle string) error {
	if s.Bucket == "" {
		return errors.New("store certificate authority: no bucket is set (setting catalogBucket)")
	}
	_, err := s.S3.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(s.Bucket), Key: aws.String(authorityKey),
		Body: strings.NewReader(bundle), ContentType: aws.String("text/plain")})
	if err != nil {
		return fmt.Errorf("put certificate authority into bucket %s: %w", s.Bucket, err)
	}
	return nil
}
