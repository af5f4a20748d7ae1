package cli

import (
	"fmt"
	"testing"

	"joiner.sh/pkg/model/cluster"
)

// What people ask for is written as the decision reads it: a token for what it waits for, and a revision.
func TestRolloutPatches(t *testing.T) {
	for _, c := range []struct {
		verb, pinned string
		st           cluster.RolloutStatus
		want         string
	}{
		{"resume", "", cluster.RolloutStatus{Phase: "Paused", ResumeToken: "b/1"}, "map[metadata:map[annotations:map[joiner.sh/abort-rollout:<nil> joiner.sh/resume-rollout:b/1]]]"},
		{"resume", "", cluster.RolloutStatus{Phase: "Healthy"}, "NodeRollout r waits for nobody: it is Healthy"},
		{"resume", "a", cluster.RolloutStatus{Phase: "Pinned"}, "map[spec:map[pinnedRevision:<nil>]]"},
		{"abort", "", cluster.RolloutStatus{Phase: "Progressing", Revision: "b"}, "map[metadata:map[annotations:map[joiner.sh/abort-rollout:b joiner.sh/resume-rollout:<nil>]]]"},
		{"abort", "", cluster.RolloutStatus{Phase: "Halted", Revision: "b"}, "NodeRollout r tries nothing: it is Halted"},
		{"undo", "", cluster.RolloutStatus{Phase: "Progressing", Revision: "b", LastGood: "a"}, "map[spec:map[pinnedRevision:a]]"},
		{"undo", "", cluster.RolloutStatus{Phase: "Healthy", Revision: "b", LastGood: "b", PreviousGood: "a"}, "map[spec:map[pinnedRevision:a]]"},
		{"undo", "", cluster.RolloutStatus{Phase: "Healthy", Revision: "a", LastGood: "a"}, "NodeRollout r knows no revision to go back to"},
	} {
		change, err := rolloutVerbs()[c.verb](cluster.Rollout{Name: "r", Pinned: c.pinned, Status: c.st})
		got := fmt.Sprint(change)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s of %+v: %s, want %s", c.verb, c.st, got, c.want)
		}
	}
}
