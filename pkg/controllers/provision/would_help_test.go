package provision

import (
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/testing/scenario"
)

// A pod that has waited for five minutes is told what would give it a node, first of all that it is told; one that has
// not is not, and one pod of a pass is asked about.
func TestWhatWouldHelpIsToldAfterFiveMinutes(t *testing.T) {
	w := scenario.Scripted(t, "pool p\ntaint team=a:NoSchedule", "pods old n=2 cpu=500 mem=512", "pods young cpu=600 mem=512")
	s := w.Snapshot
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	s.Catalog, s.Classes = c, []instancetypes.Class{instancetypes.DefaultClass(c)}
	for i, p := range s.Pods {
		s.Pods[i].Created, s.Pods[i].UID = s.Now.Add(-5*time.Minute), p.Name
		if strings.HasPrefix(p.Name, "young") {
			s.Pods[i].Created = s.Now.Add(-299 * time.Second)
		}
	}
	told := func(h wouldHelp) (out []string) {
		for _, u := range h.withHelp(s, binpack.Pods(s).Unplaced) {
			if strings.HasPrefix(u.Why[0], "would help: add spec.tolerations team=a:NoSchedule to the pod: a new ") && len(u.Why) == 2 {
				out = append(out, u.Pod)
			}
		}
		return out
	}
	h := wouldHelp{}
	if got := strings.Join(told(h), " "); got != "default/old-1" {
		t.Errorf("the first pass tells %q", got)
	}
	if got := strings.Join(told(h), " "); got != "default/old-1 default/old-2" {
		t.Errorf("the second pass tells %q", got)
	}
}
