package cli

import (
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/whatif"
	"joiner.sh/pkg/workload"
)

// Bounds of what a plan says would help.
const (
	mostAskedGroups = 5
	mostWouldHelp   = 3
)

// addWhatIf adds what would give pods of the first groups a place. A change of a pod is one of its whole group.
func addWhatIf(all []workload.Unplaced, s cluster.Snapshot, group func(key string) string) {
	sells := binpack.ResolveOfferings(s)
	s.Pods = slices.Clone(s.Pods)
	for i := range s.Pods {
		s.Pods[i].Controller = group(s.Pods[i].Key())
	}
	left := whatif.DefaultWork
	for i := range all[:min(len(all), mostAskedGroups)] {
		u := &all[i]
		if u.Pod == "" || left <= 0 {
			continue
		}
		a := whatif.ForPod(s, sells, u.Pod, whatif.Limits{Work: left})
		left -= a.Work
		for _, c := range a.Changes[:min(len(a.Changes), mostWouldHelp)] {
			u.WouldHelp = append(u.WouldHelp, strings.ReplaceAll(c.String(), "Pod "+u.Pod, "the pods of "+u.Group))
		}
	}
}
