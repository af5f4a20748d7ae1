package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/install/preflight"
)

// What an update has made already is no obstacle. Of a version that did not say what it made, all counts as made.
func TestWhatTheStackHasMade(t *testing.T) {
	now := preflight.StackPlan{MadeNodeRoles: []string{"KarpenterNodeRole-demo"}, VPC: "vpc-1", Endpoints: []string{"ec2", "ssm"}, Reserved: 204, ForNotices: 200}
	plan := now
	plan.Cluster, plan.Region = "demo", "us-west-2"
	older := plan
	older.Reserved = 4
	for name, c := range map[string]struct {
		event  cfn.Event
		before *preflight.StackPlan
	}{
		"create": {cfn.Event{RequestType: cfn.RequestCreate, ResourceProperties: now.Properties(), OldResourceProperties: now.Properties()}, nil},
		"update": {cfn.Event{RequestType: cfn.RequestUpdate, ResourceProperties: now.Properties(), OldResourceProperties: preflight.StackPlan{Cluster: "demo", Reserved: 7}.Properties()},
			&preflight.StackPlan{Cluster: "demo", Region: "us-west-2", Reserved: 7}},
		"update of one that told its concurrency alone": {cfn.Event{RequestType: cfn.RequestUpdate, ResourceProperties: now.Properties(), OldResourceProperties: map[string]any{"Reserved": "4"}}, &older},
		"update of one that told nothing":               {cfn.Event{RequestType: cfn.RequestUpdate, ResourceProperties: now.Properties(), OldResourceProperties: map[string]any{}}, &plan},
	} {
		got, before := plans(c.event, "demo", "us-west-2")
		if diff := cmp.Diff(plan, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(c.before, before); diff != "" {
			t.Errorf("%s, before (-want +got):\n%s", name, diff)
		}
	}
}

// What was granted a moment ago may be refused for some seconds; what is refused for long is.
func TestAPermissionMayTakeAMoment(t *testing.T) {
	denied := errors.New("AccessDenied")
	for name, c := range map[string]struct {
		refusals int
		err      error
		calls    int // 0: more than one
	}{
		"at once":                {0, nil, 1},
		"after a moment":         {3, nil, 4},
		"never":                  {1 << 30, denied, 0},
		"never, and not missing": {0, errors.New("no such host"), 1},
	} {
		calls := 0
		read := func(context.Context, preflight.StackPlan) (preflight.Facts, bool, error) {
			calls++
			if calls <= c.refusals {
				return preflight.Facts{}, true, denied
			}
			return preflight.Facts{}, false, c.err
		}
		_, err := readPermitted(t.Context(), read, preflight.StackPlan{}, time.Millisecond, 50*time.Millisecond)
		if !errors.Is(err, c.err) || c.calls > 0 && calls != c.calls || c.calls == 0 && calls < 2 {
			t.Errorf("%s: %v after %d calls, want %v after %d", name, err, calls, c.err, c.calls)
		}
	}
}
