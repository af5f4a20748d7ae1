package discovery

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/google/go-cmp/cmp"
)

// leftovers are two launch templates and two instance profiles, of each of which the first may not be deleted.
type leftovers struct{ deleted []string }

func (l *leftovers) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	status, text := http.StatusOK, "<R></R>"
	id := form.Get("LaunchTemplateId") + form.Get("InstanceProfileName")
	switch action := form.Get("Action"); {
	case action == "DescribeLaunchTemplates":
		text = `<R><launchTemplates><item><launchTemplateId>lt-1</launchTemplateId></item><item><launchTemplateId>lt-2</launchTemplateId></item></launchTemplates></R>`
	case action == "ListInstanceProfiles":
		text = `<R><ListInstanceProfilesResult><InstanceProfiles><member><InstanceProfileName>profile-1</InstanceProfileName></member><member><InstanceProfileName>profile-2</InstanceProfileName></member></InstanceProfiles></ListInstanceProfilesResult></R>`
	case strings.HasSuffix(id, "-1") && strings.HasPrefix(id, "lt"):
		status, text = http.StatusForbidden, "<Response><Errors><Error><Code>UnauthorizedOperation</Code></Error></Errors></Response>"
	case strings.HasSuffix(id, "-1"):
		status, text = http.StatusForbidden, "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>"
	default:
		l.deleted = append(l.deleted, id)
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// What may not be deleted keeps nothing else that was made for classes.
func TestWhatMayNotBeDeletedKeepsNothingElse(t *testing.T) {
	l := &leftovers{}
	r := &ClassResolver{Cluster: "demo", Region: "us-west-2",
		EC2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: l, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}}),
		IAM: iam.New(iam.Options{Region: "us-west-2", HTTPClient: l, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})}
	err := r.RemoveLeftovers(t.Context())
	if diff := cmp.Diff([]string{"lt-2", "profile-2"}, l.deleted); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	if err == nil || !strings.Contains(err.Error(), "delete launch template") || !strings.Contains(err.Error(), "delete instance profile profile-1") {
		t.Errorf("error %v", err)
	}
}
