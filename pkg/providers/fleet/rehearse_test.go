package fleet

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
)

// oneByOne lets one request in at a time.
type oneByOne struct {
	mu sync.Mutex
	n  interface {
		Do(r *http.Request) (*http.Response, error)
	}
}

func (o *oneByOne) Do(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n.Do(r)
}

// stage answers dry runs, each with a status and a code by its action and subnet; what is no dry run is a fault.
type stage struct {
	t       *testing.T
	answers map[string]string
	heard   []string
}

func (s *stage) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	status, text := http.StatusOK, "<Response><launchTemplates><item><launchTemplateName>x</launchTemplateName></item></launchTemplates></Response>"
	if action := form.Get("Action"); action == "CreateFleet" || action == "RunInstances" {
		what := strings.TrimSpace(action + " " + form.Get("NetworkInterface.1.SubnetId"))
		s.heard = append(s.heard, what)
		if form.Get("DryRun") != "true" {
			s.t.Errorf("%s is no dry run", what)
		}
		status, text = http.StatusPreconditionFailed, "DryRunOperation"
		if a, ok := s.answers[what]; ok {
			if _, err := fmt.Sscanf(a, "%d %s", &status, &text); err != nil {
				s.t.Error(err)
			}
		}
		text = "<Response><Errors><Error><Code>" + text + "</Code><Message>m</Message></Error></Errors></Response>"
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// A rehearsal changes nothing in EC2. A no is a refusal, unless EC2 was busy or failed: then nobody knows. Of several
// subnets one that would do is enough, and else the first no tells.
func TestARehearsal(t *testing.T) {
	const run, busy = "RunInstances subnet-a, RunInstances subnet-b", "unknown"
	for _, c := range []struct {
		answers map[string]string
		want    string
		heard   string
	}{
		{nil, "yes", "CreateFleet, RunInstances subnet-a"},
		{map[string]string{"CreateFleet": "403 UnauthorizedOperation"}, "CreateFleet UnauthorizedOperation", "CreateFleet"},
		{map[string]string{"CreateFleet": "503 RequestLimitExceeded"}, busy, "CreateFleet"},
		{map[string]string{"CreateFleet": "400 RequestLimitExceeded"}, busy, "CreateFleet"},
		{map[string]string{"CreateFleet": "400 ThrottlingException"}, busy, "CreateFleet"},
		{map[string]string{"CreateFleet": "500 InternalError"}, busy, "CreateFleet"},
		{map[string]string{"CreateFleet": "400 InvalidLaunchTemplateName.NotFoundException"}, busy, "CreateFleet"},
		{map[string]string{"RunInstances subnet-a": "400 InvalidParameterValue"}, "yes", "CreateFleet, " + run},
		{map[string]string{"RunInstances subnet-a": "400 InvalidParameterValue", "RunInstances subnet-b": "403 UnauthorizedOperation"}, "RunInstances InvalidParameterValue", "CreateFleet, " + run},
		{map[string]string{"RunInstances subnet-a": "400 RequestLimitExceeded"}, busy, "CreateFleet, RunInstances subnet-a"},
	} {
		s := &stage{t: t, answers: c.answers}
		f := &Fleet{Cluster: "demo", EC2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: s, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})}
		o := order()
		o.Templates[0].Overrides = append(o.Templates[0].Overrides, launch.Override{Offer: instancetypes.Offer{CapacityType: instancetypes.OnDemand, Type: "m5.large", Zone: "b"}, SubnetID: "subnet-b"})
		err := f.DryRun(t.Context(), o)
		got := "yes"
		if no, ok := errors.AsType[*launch.RefusedError](err); ok {
			got = no.Call + " " + no.Code
		} else if err != nil {
			got = busy
		}
		if heard := strings.Join(s.heard, ", "); got != c.want || heard != c.heard {
			t.Errorf("answered %v: %s (%v) after %s\nwanted %s after %s", c.answers, got, err, heard, c.want, c.heard)
		}
	}
}
