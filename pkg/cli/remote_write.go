package cli

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"joiner.sh/pkg/cli/doctor"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/settings"
)

// regionOfARN is the fourth part of an ARN.
const regionOfARN = 3

// secretFacts describes the secret with which something is sent to the URL, if there are both; what is in it is not
// read.
func secretFacts(ctx context.Context, cfg aws.Config, url, secret string) doctor.Secret {
	if url == "" || secret == "" {
		return doctor.Secret{}
	}
	out := doctor.Secret{ARN: secret}
	got, err := secretsmanager.NewFromConfig(cfg, func(o *secretsmanager.Options) {
		if parts := strings.Split(secret, ":"); len(parts) > regionOfARN && parts[regionOfARN] != "" {
			o.Region = parts[regionOfARN] // as the function does that reads it
		}
	}).DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: &secret})
	switch {
	case awserrors.IsMissing(err):
		return out
	case err != nil:
		out.Unknown = err.Error()
		return out
	}
	out.Found, out.Deleted, out.Key = true, got.DeletedDate != nil, aws.ToString(got.KmsKeyId)
	if strings.HasSuffix(out.Key, "alias/aws/secretsmanager") {
		out.Key = ""
	}
	return out
}

// remoteWriteOf returns where metrics are sent by what a function has in its environment.
func remoteWriteOf(environment map[string]string) settings.RemoteWrite {
	return settings.RemoteWrite{URL: environment["REMOTE_WRITE_URL"], Secret: environment["REMOTE_WRITE_SECRET"]}
}
