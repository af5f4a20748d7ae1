package cli

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/cli/doctor"
	"joiner.sh/pkg/settings"
)

const secretARN = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:grafana-AbCdEf"

// answer is what Secrets Manager says to everything.
type answer struct {
	status int
	body   string
	asked  []string
}

func (a *answer) Do(r *http.Request) (*http.Response, error) {
	a.asked = append(a.asked, r.URL.Host+" "+r.Header.Get("X-Amz-Target"))
	return &http.Response{StatusCode: a.status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.1"}},
		Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// TestTheSecretOfRemoteWriteIsDescribed in its own region, and only where one is used.
func TestTheSecretOfRemoteWriteIsDescribed(t *testing.T) {
	set := settings.RemoteWrite{URL: "https://metrics.example/push", Secret: secretARN}
	for _, c := range []struct {
		a    answer
		want doctor.Secret
	}{
		{answer{status: 200, body: `{"KmsKeyId": "alias/aws/secretsmanager"}`}, doctor.Secret{ARN: secretARN, Found: true}},
		{answer{status: 200, body: `{"KmsKeyId": "arn:aws:kms:eu-west-1:1:key/k", "DeletedDate": 1800000000}`},
			doctor.Secret{ARN: secretARN, Found: true, Deleted: true, Key: "arn:aws:kms:eu-west-1:1:key/k"}},
		{answer{status: 400, body: `{"__type": "ResourceNotFoundException"}`}, doctor.Secret{ARN: secretARN}},
	} {
		cfg := aws.Config{Region: "us-west-2", HTTPClient: &c.a, Credentials: aws.AnonymousCredentials{}}
		if d := cmp.Diff(c.want, secretFacts(t.Context(), cfg, set.URL, set.Secret)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.a.body, d)
		}
		if d := cmp.Diff([]string{"secretsmanager.eu-west-1.amazonaws.com secretsmanager.DescribeSecret"}, c.a.asked); d != "" {
			t.Errorf("asked (-want +got):\n%s", d)
		}
	}
	denied := answer{status: 400, body: `{"__type": "AccessDeniedException", "message": "no"}`}
	got := secretFacts(t.Context(), aws.Config{HTTPClient: &denied, Credentials: aws.AnonymousCredentials{}}, set.URL, set.Secret)
	if !strings.Contains(got.Unknown, "AccessDeniedException") || got.Found {
		t.Errorf("without the right: %+v", got)
	}
	if got := secretFacts(t.Context(), aws.Config{}, set.URL, ""); got != (doctor.Secret{}) {
		t.Errorf("without a secret: %+v", got)
	}
}

// TestTheTemplateSaysWhereMetricsGo before it is deployed.
func TestTheTemplateSaysWhereMetricsGo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "joiner.template.json")
	const text = `{"Resources": {
  "Preflight": {"Type": "Custom::JoinerPreflight", "Properties": {"ClusterName": "shop"}},
  "Other": {"Type": "AWS::Lambda::Function", "Properties": {"Environment": {"Variables": {"BUCKET": {"Ref": "B"}}}}},
  "Lifecycle": {"Type": "AWS::Lambda::Function", "Properties": {"Environment": {"Variables": {"REMOTE_WRITE_URL": "https://metrics.example/push", "REMOTE_WRITE_SECRET": "` + secretARN + `"}}}}}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, got, err := readPreflightProperties(file, "shop")
	want := settings.RemoteWrite{URL: "https://metrics.example/push", Secret: secretARN}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, d)
	}
}
