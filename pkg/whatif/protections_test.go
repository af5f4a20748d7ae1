package whatif

import (
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/scenario"
)

// A guard costs what is saved without it, whether it keeps its nodes alone or with others, and nothing where it keeps
// none. Guards of one name are told together, by deciding without all of them.
func TestProtections(t *testing.T) {
	w := scenario.Scripted(t, "type m.l cpu=2000 mem=8192 milliusd=100", "type m.xl cpu=4000 mem=16384 milliusd=200",
		"pool p", "node n0 type=m.xl zone=a pool=p", "node n1 type=m.xl zone=a pool=p", "node n2 type=m.xl zone=a pool=p", "node n3 type=m.xl zone=a pool=p",
		"pods web on=n0 cpu=300 mem=256 ready\nlabel app=web", "pods db on=n1 cpu=300 mem=256 ready protected\nlabel app=db",
		"pods old on=n2 cpu=300 mem=256 ready protected\nlabel app=web", "pods full on=n3 cpu=3000 mem=256 ready", "budget web\napp=web")
	s := &w.Snapshot
	for i := range s.Nodes {
		s.Nodes[i].Created, s.Claims[i].Created = s.Now.Add(-time.Hour), s.Now.Add(-time.Hour)
	}
	s.Pools[0].Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "1"}}}
	told := func(by func(Edit) string) string {
		var out []string
		for _, p := range Protections(*s, disruption.Memory{}, w.Market, by, Limits{}) {
			out = append(out, p.String())
		}
		return strings.Join(out, "\n")
	}
	want := `Pod default/db-1 metadata.annotations.karpenter.sh/do-not-disrupt keeps 1 nodes: 4.80 USD a day
Pod default/old-1 metadata.annotations.karpenter.sh/do-not-disrupt keeps 1 nodes: 4.80 USD a day, together with PodDisruptionBudget default/web allowed disruptions
PodDisruptionBudget default/web allowed disruptions keeps 1 nodes: 4.80 USD a day`
	if got := told(nil); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := told(func(e Edit) string { return e.Namespace }); got != "default keeps 3 nodes: 14.40 USD a day" {
		t.Errorf("by namespace: %s", got)
	}
}
