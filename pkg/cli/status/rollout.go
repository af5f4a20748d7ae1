package status

import (
	"cmp"
	"fmt"

	"joiner.sh/pkg/model/cluster"
)

// RolloutLine says in one line what a NodeRollout is at.
func RolloutLine(r cluster.Rollout) string {
	st := r.Status
	out := fmt.Sprintf("NodeRollout %s: %s", r.Name, cmp.Or(st.Phase, "not looked at yet"))
	if st.Phase == cluster.RolloutProgressing || st.Phase == cluster.RolloutPaused {
		out += fmt.Sprintf(", step %d of %d, %d nodes of revision %s, %d others", st.Step+1, len(r.Steps), st.NewNodes, st.Revision,
			st.OldNodes)
	}
	if st.Message != "" {
		out += "; " + st.Message
	}
	if st.Unavailable != "" {
		out += "; the last good revision cannot be launched: " + st.Unavailable
	}
	if st.NoAlarm != "" {
		out += "; " + st.NoAlarm
	}
	return out
}
