package fleet

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
)

func at(minute int) time.Time { return time.Date(2026, 11, 1, 12, minute, 0, 0, time.UTC) }

// Of what EC2 tells of instances that counts which lasts: a check that fails as a whole, since its first part failed,
// and a change that is neither done nor called off.
func TestWhatCountsOfAStatus(t *testing.T) {
	summary := func(status types.SummaryStatus, details ...types.InstanceStatusDetails) *types.InstanceStatusSummary {
		return &types.InstanceStatusSummary{Status: status, Details: details}
	}
	failed := func(minute int) types.InstanceStatusDetails {
		return types.InstanceStatusDetails{Status: types.StatusTypeFailed, ImpairedSince: aws.Time(at(minute))}
	}
	passed := types.InstanceStatusDetails{Status: types.StatusTypePassed, ImpairedSince: aws.Time(at(0))}
	event := func(code types.EventCode, minute int, description string) types.InstanceStatusEvent {
		return types.InstanceStatusEvent{Code: code, NotBefore: aws.Time(at(minute)), Description: aws.String(description)}
	}
	of := func(id string) types.InstanceStatus { return types.InstanceStatus{InstanceId: aws.String(id)} }
	ill, dull, both, events := of("i-4"), of("i-3"), of("i-2"), of("i-1")
	ill.InstanceStatus = summary(types.SummaryStatusImpaired, failed(9), failed(5), failed(7), passed)
	dull.InstanceStatus, dull.SystemStatus = summary(types.SummaryStatusInsufficientData, failed(1)), summary(types.SummaryStatusOk, failed(1))
	both.InstanceStatus, both.SystemStatus = summary(types.SummaryStatusImpaired, failed(2)), summary(types.SummaryStatusImpaired, failed(2))
	events.SystemStatus = summary(types.SummaryStatusImpaired, passed)
	events.Events = []types.InstanceStatusEvent{event("instance-stop", 9, "soon"), event("instance-retirement", 8, "[Completed] done"), event("instance-reboot", 7, "[Canceled] not"),
		event("instance-retirement", 6, "it is degraded"), event("odd", 5, "new")}
	failing, changes := distinctStatuses([]types.InstanceStatus{ill, dull, both, both, events, events})
	if d := cmp.Diff([]cluster.Impairment{{Instance: "i-2", Since: at(2)}, {Instance: "i-2", System: true, Since: at(2)}, {Instance: "i-4", Since: at(5)}}, failing); d != "" {
		t.Errorf("failing (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]cluster.ScheduledChange{{Instance: "i-1", Code: "instance-retirement", At: at(6)}, {Instance: "i-1", Code: "instance-stop", At: at(9)}}, changes); d != "" {
		t.Errorf("changes (-want +got):\n%s", d)
	}
}

// nurse hears what is asked about statuses.
type nurse struct {
	heard []string
	code  string // for questions that name instances
}

func (n *nurse) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	n.heard = append(n.heard, strings.TrimSpace(fmt.Sprint(len(listed(form, "InstanceId.")), " ", form.Get("Filter.1.Name"), "=", strings.Join(listed(form, "Filter.1.Value."), ","))))
	status, text := http.StatusOK, "<Response></Response>"
	if n.code != "" && form.Has("InstanceId.1") {
		status, text = http.StatusBadRequest, "<Response><Errors><Error><Code>"+n.code+"</Code><Message>m</Message></Error></Errors></Response>"
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// Few instances are asked for by name, and many, or some of whom one has gone meanwhile, by what ails them.
func TestHowStatusesAreAskedFor(t *testing.T) {
	all := []string{"0 event.code=instance-reboot,system-reboot,system-maintenance,instance-retirement,instance-stop", "0 instance-status.status=impaired", "0 system-status.status=impaired"}
	for _, c := range []struct {
		instances int
		code      string
		want      []string
		fails     bool
	}{
		{0, "", nil, false}, {1, "", []string{"1 ="}, false}, {maxNamed, "", []string{"100 ="}, false}, {maxNamed + 1, "", all, false},
		{2, instanceNotFound, append(slices.Clone(all), "2 ="), false}, {2, "RequestLimitExceeded", []string{"2 ="}, true},
	} {
		n := &nurse{code: c.code}
		f := &Fleet{EC2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: &oneByOne{n: n}, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})}
		var ids []string
		for i := range c.instances {
			ids = append(ids, fmt.Sprint("i-", i))
		}
		_, _, err := f.ListStatuses(t.Context(), ids)
		slices.Sort(n.heard)
		if d := cmp.Diff(c.want, n.heard); d != "" || (err != nil) != c.fails {
			t.Errorf("%d instances, answered %q: error %v (-want +got):\n%s", c.instances, c.code, err, d)
		}
	}
}
