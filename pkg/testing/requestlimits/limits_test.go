package requestlimits_test

import (
	"path"
	"testing"
	"time"

	"joiner.sh/pkg/testing/requestlimits"
)

// TestEveryLimitHasItsSource, and can be met at all.
func TestEveryLimitHasItsSource(t *testing.T) {
	for _, l := range requestlimits.Default() {
		_, err := path.Match(l.Action, "")
		if l.Source == "" || l.Burst < 1 || l.PerSecond <= 0 || l.Service == "" || l.Action == "" || err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// TestCallsBeyondABucketAreRefused: a call takes of the bucket of requests of its own action and of the bucket of what
// it names, and both fill again.
func TestCallsBeyondABucketAreRefused(t *testing.T) {
	a := requestlimits.NewAccount([]requestlimits.Limit{
		{Service: "ec2", Action: "TerminateInstances", Each: "InstanceId", Burst: 10, PerSecond: 2},
		{Service: "ec2", Action: "Describe*", Burst: 1, PerSecond: 1},
		{Service: "ec2", Action: "*", Burst: 2, PerSecond: 1},
	})
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, call := range []struct {
		after     time.Duration
		action    string
		instances int
		taken     bool
	}{
		{0, "CreateFleet", 0, true},
		{0, "CreateFleet", 0, true},
		{0, "CreateFleet", 0, false},
		{0, "CreateTags", 0, true}, // another action, another bucket
		{0, "DescribeInstances", 0, true},
		{0, "DescribeInstances", 0, false}, // the first limit that fits
		{time.Second, "CreateFleet", 0, true},
		{time.Second, "CreateFleet", 0, false},
		{time.Second, "TerminateInstances", 9, true},
		{time.Second, "TerminateInstances", 9, false},
		{5 * time.Second, "TerminateInstances", 9, true},
		{10 * time.Second, "TerminateInstances", 50, true}, // a full bucket takes any one call
		{10 * time.Second, "TerminateInstances", 1, false},
	} {
		counts := map[string]int{"InstanceId": call.instances}
		if got := a.Take(start.Add(call.after), "ec2", call.action, counts); got != call.taken {
			t.Errorf("after %s, %s of %d instances is taken: %t", call.after, call.action, call.instances, got)
		}
	}
}
