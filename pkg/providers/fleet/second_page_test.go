package fleet

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/paging"
)

// firstPage answers each question with a page that has a next one, and refuses that.
type firstPage struct {
	body    string
	endless bool     // no page is refused
	deleted []string // launch templates
}

func (p *firstPage) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	status, text := http.StatusOK, p.body
	switch {
	case form.Has("NextToken") && !p.endless:
		status, text = http.StatusServiceUnavailable, "<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>m</Message></Error></Errors></Response>"
	case form.Has("LaunchTemplateId"):
		p.deleted, text = append(p.deleted, form.Get("LaunchTemplateId")), "<R></R>"
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

func (p *firstPage) fleet() *Fleet {
	return &Fleet{Cluster: "demo", Now: func() time.Time { return time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC) },
		EC2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: &oneByOne{n: p}, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{}})}
}

// A list of which only the first page can be read is an error and nothing else: the instances of the second would look
// sound, called off, or gone.
func TestHalfAListIsNone(t *testing.T) {
	p := &firstPage{body: "<R><instanceStatusSet><item><instanceId>i-1</instanceId><systemStatus><status>impaired</status><details><item><name>reachability</name>" +
		"<status>failed</status><impairedSince>2026-05-08T09:10:00.000Z</impairedSince></item></details></systemStatus></item></instanceStatusSet><nextToken>more</nextToken></R>"}
	failing, changes, err := p.fleet().ListStatuses(t.Context(), slices.Repeat([]string{"i-1"}, maxNamed+1))
	if len(failing)+len(changes) > 0 || err == nil || !strings.Contains(err.Error(), "RequestLimitExceeded") {
		t.Errorf("failing %v, changes %v, error %v", failing, changes, err)
	}
	if found, err := p.fleet().unhealthyStatuses(t.Context()); len(found) > 0 || err == nil {
		t.Errorf("%d statuses, error %v", len(found), err)
	}
	p.body = "<R><reservationSet>" + described("i-1", "2026-05-08T09:10:00.000Z") + "</reservationSet><nextToken>more</nextToken></R>"
	if found, err := p.fleet().ListInstances(t.Context(), cluster.InstanceFilter{}); len(found) > 0 || err == nil {
		t.Errorf("%d instances, error %v", len(found), err)
	}
}

// A list of more pages than are read is an error that says so; a sweep has swept what it saw.
func TestAListBeyondItsBoundSaysSo(t *testing.T) {
	p := &firstPage{endless: true, body: "<R><instanceStatusSet><item><instanceId>i-1</instanceId></item></instanceStatusSet>" +
		"<reservationSet>" + described("i-1", "2026-05-08T09:10:00.000Z") + "</reservationSet><launchTemplates><item><launchTemplateId>lt-a</launchTemplateId>" +
		"<launchTemplateName>joiner/demo/a</launchTemplateName><createTime>2026-01-01T00:00:00Z</createTime></item></launchTemplates><nextToken>more</nextToken></R>"}
	for what, read := range map[string]func() error{
		"statuses":  func() error { _, err := p.fleet().unhealthyStatuses(t.Context()); return err },
		"instances": func() error { _, err := p.fleet().ListInstances(t.Context(), cluster.InstanceFilter{}); return err },
		"templates": func() error { _, err := p.fleet().SweepTemplates(t.Context(), time.Hour); return err },
	} {
		err := read()
		if _, beyond := errors.AsType[*paging.BoundError](err); !beyond {
			t.Errorf("%s: error %v", what, err)
		}
	}
	if len(p.deleted) != maxPages {
		t.Errorf("%d templates deleted, want %d", len(p.deleted), maxPages)
	}
}

// A sweep that cannot read the second page says so, and has swept the first.
func TestASweepThatSeesHalfSaysSo(t *testing.T) {
	p := &firstPage{body: "<R><launchTemplates><item><launchTemplateId>lt-a</launchTemplateId><launchTemplateName>joiner/demo/a</launchTemplateName><createTime>2026-01-01T00:00:00Z</createTime></item>" +
		"</launchTemplates><nextToken>more</nextToken></R>"}
	n, err := p.fleet().SweepTemplates(t.Context(), time.Hour)
	if d := cmp.Diff([]string{"lt-a"}, p.deleted); d != "" || n != 1 || err == nil || !strings.Contains(err.Error(), "RequestLimitExceeded") {
		t.Errorf("%d swept, error %v (-want +got):\n%s", n, err, d)
	}
}
