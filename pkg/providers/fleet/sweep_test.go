package fleet

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"
)

// oldTemplates lists three launch templates, of which the first may not be deleted.
type oldTemplates struct{ deleted []string }

func (o *oldTemplates) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	status, text := http.StatusOK, "<R></R>"
	switch id := form.Get("LaunchTemplateId"); {
	case form.Get("Action") == "DescribeLaunchTemplates":
		text = "<R><launchTemplates>"
		for _, id := range []string{"a", "b", "c"} {
			text += "<item><launchTemplateId>lt-" + id + "</launchTemplateId><launchTemplateName>joiner/demo/" + id + "</launchTemplateName><createTime>2026-01-01T00:00:00Z</createTime></item>"
		}
		text += "</launchTemplates></R>"
	case id == "lt-a":
		status, text = http.StatusForbidden, "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error></Errors></Response>"
	default:
		o.deleted = append(o.deleted, id)
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// A template that may not be deleted, because its tags were changed and a condition of the policy names them, keeps no
// other one.
func TestOneTemplateThatMayNotBeDeleted(t *testing.T) {
	w := &oldTemplates{}
	f := &Fleet{Cluster: "demo", Now: func() time.Time { return time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC) },
		EC2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: w, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})}
	n, err := f.SweepTemplates(t.Context(), time.Hour)
	if diff := cmp.Diff([]string{"lt-b", "lt-c"}, w.deleted); diff != "" || n != 2 {
		t.Errorf("%d deleted (-want +got):\n%s", n, diff)
	}
	if err == nil || !strings.Contains(err.Error(), "delete launch template joiner/demo/a: ") {
		t.Errorf("error %v", err)
	}
}
