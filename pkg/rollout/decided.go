package rollout

import (
	"fmt"

	"joiner.sh/pkg/model/cluster"
)

// Decided says in a line each what the pass decided about NodeRollouts; nothing of those that it left as they were.
func Decided(s cluster.Snapshot) (lines []string) {
	for _, r := range s.Rollouts {
		if r.Before != nil && (r.Before.Phase != r.Status.Phase || r.Before.Step != r.Status.Step ||
			r.Before.Revision != r.Status.Revision || r.Before.Allowed != r.Status.Allowed) {
			lines = append(lines, line(r.Name, r.Status))
		}
	}
	return lines
}

func line(name string, st cluster.RolloutStatus) string {
	out := fmt.Sprintf("NodeRollout %s: %s at step %d, revision %s, %d nodes may have it, last good %s", name, st.Phase,
		st.Step, st.Revision, st.Allowed, st.LastGood)
	if st.Message != "" {
		out += "; " + st.Message
	}
	return out
}

// DecideAgain decides anew what the pass decided about the NodeRollouts of a snapshot, from what it found: their
// statuses, by name, and what it says of them. Those that it left as they were are left out.
func DecideAgain(s cluster.Snapshot) (statuses map[string]cluster.RolloutStatus, lines []string) {
	statuses = map[string]cluster.RolloutStatus{}
	for _, r := range s.Rollouts {
		if r.Before == nil {
			continue
		}
		was := *r.Before
		r.Status, r.Before = was, nil
		st := Advance(s, r).Status
		statuses[r.Name] = st
		r.Status, r.Before = st, &was
		lines = append(lines, Decided(cluster.Snapshot{Rollouts: []cluster.Rollout{r}})...)
	}
	return statuses, lines
}
