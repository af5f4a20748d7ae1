package ec2_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
)

// sickbay is four running instances: one well, one that fails its own check, one whose host does, and one with dates.
func sickbay(t *testing.T) (r *rig, ids []string, failing []cluster.Impairment, changes []cluster.ScheduledChange) {
	t.Helper()
	r = start(t, 10)
	for _, token := range []string{"a", "b", "c", "d"} {
		ids = append(ids, r.launch(t, r.order("on-demand", "m5.large"), token))
		r.running(t, ids[len(ids)-1])
	}
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.ImpairInstance(ids[1], false, since))
	must(r.ImpairInstance(ids[2], true, since))
	must(r.ScheduleEvent(ids[2], "system-reboot", since)) // found by two of the filters
	for code, how := range map[string]string{"instance-stop": "", "instance-retirement": "", "instance-reboot": "Completed", "system-maintenance": "Canceled", "something-new": ""} {
		must(r.ScheduleEvent(ids[3], code, since))
		if how != "" {
			must(r.CloseEvents(ids[3], code, how))
		}
	}
	failing = []cluster.Impairment{{Instance: ids[1], Since: since}, {Instance: ids[2], System: true, Since: since}}
	changes = []cluster.ScheduledChange{{Instance: ids[2], Code: "system-reboot", At: since},
		{Instance: ids[3], Code: "instance-retirement", At: since}, {Instance: ids[3], Code: "instance-stop", At: since}}
	slices.SortFunc(failing, func(a, b cluster.Impairment) int { return cmp.Compare(a.Instance, b.Instance) })
	slices.SortFunc(changes, func(a, b cluster.ScheduledChange) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Code, b.Code))
	})
	return r, ids, failing, changes
}

// What EC2 says of instances is the same whether they are named, are too many to be named, or one has gone meanwhile,
// and costs one call or three. What was made or called off does not count, nor a code that nobody is to leave for.
func TestStatuses(t *testing.T) {
	r, ids, failing, changes := sickbay(t)
	many := slices.Repeat(ids, 26)
	for name, c := range map[string]struct {
		running []string
		calls   int
	}{
		"named": {ids, 1}, "too many to be named": {many, 3}, "one has gone": {append(slices.Clone(ids), "i-0123456789abcdef0"), 4},
	} {
		before := r.CallCounts()["ec2:DescribeInstanceStatus"]
		gotFailing, gotChanges, err := r.ListStatuses(t.Context(), c.running)
		if diff := gocmp.Diff(failing, gotFailing); diff != "" || err != nil {
			t.Errorf("%s: error %v, failing (-want +got):\n%s", name, err, diff)
		}
		if diff := gocmp.Diff(changes, gotChanges); diff != "" {
			t.Errorf("%s: changes (-want +got):\n%s", name, diff)
		}
		if n := r.CallCounts()["ec2:DescribeInstanceStatus"] - before; n != c.calls {
			t.Errorf("%s: %d calls, want %d", name, n, c.calls)
		}
	}
	before := r.CallCounts()["ec2:DescribeInstanceStatus"]
	if a, b, err := r.ListStatuses(t.Context(), nil); len(a)+len(b) > 0 || err != nil || r.CallCounts()["ec2:DescribeInstanceStatus"] != before {
		t.Errorf("without instances: %v %v %v, or a call", a, b, err)
	}
}
