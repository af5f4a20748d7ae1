package status

import (
	"strings"
	"testing"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/binpack"
)

// The status and its page have a line for each NodeRollout, whatever it is at.
func TestRolloutsInStatus(t *testing.T) {
	steps := []cluster.RolloutStep{{Nodes: 1}, {Percent: 10}}
	s := cluster.Snapshot{Rollouts: []cluster.Rollout{
		{Name: "a", Steps: steps},
		{Name: "b", Steps: steps, Status: cluster.RolloutStatus{Phase: cluster.RolloutPaused, Step: 1, Revision: "r2", NewNodes: 1, OldNodes: 9,
			Message: "paused until people resume it", NoAlarm: "spec.analysis.alarms: there is no alarm x"}},
		{Name: "c", Steps: steps, Status: cluster.RolloutStatus{Phase: cluster.RolloutHalted, Message: "failed: <CloudWatch alarm x fires>",
			Unavailable: "revision r1 is not stored any more"}},
	}}
	v := ViewOf(s, disruption.Memory{}, binpack.ResolveOfferings(s))
	want := []string{
		"NodeRollout a: not looked at yet",
		"NodeRollout b: Paused, step 2 of 2, 1 nodes of revision r2, 9 others; paused until people resume it; spec.analysis.alarms: there is no alarm x",
		"NodeRollout c: Halted; failed: <CloudWatch alarm x fires>; the last good revision cannot be launched: revision r1 is not stored any more",
	}
	page := pageOf(t, v)
	for i, line := range want {
		if i >= len(v.Rollouts) || v.Rollouts[i] != line {
			t.Fatalf("lines %q, want %q", v.Rollouts, want)
		}
		escaped := strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(line)
		if strings.Count(page, ">"+escaped+"<") != 1 {
			t.Errorf("the page does not have %q once", escaped)
		}
	}
}
