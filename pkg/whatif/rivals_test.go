package whatif

import (
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/scenario"
)

// Where others take what the widest edit gives, a smaller one of the same kind is found: without minValues the other
// pods come to four paid nodes, which are all that the limit allows, and with one type to choose from all share c.l.
func TestASmallerEditWhereOthersTakeWhatTheWidestGives(t *testing.T) {
	w := scenario.Scripted(t, "type c.l cpu=8000 mem=16384 milliusd=320", "type m.m cpu=4000 mem=16384 milliusd=190",
		"type g.m cpu=4000 mem=16384 milliusd=185", "type c.m cpu=4000 mem=8192 milliusd=160", "type f0.large cpu=2000 mem=8192 milliusd=94",
		"commitment paid type=f0.large flexible room=64",
		"pool p\nlimit memory 32768\nrequire type Exists min=3", "pods x n=5 cpu=1600 mem=2816")
	const last = "default/x-5"
	a := ForPod(w.Snapshot, w.Market, last, Limits{})
	want := "change spec.template.spec.requirements[key=node.kubernetes.io/instance-type].minValues of NodePool p from 3 to 1: "
	if !slices.ContainsFunc(a.Changes, func(c Change) bool { return strings.HasPrefix(c.String(), want) }) {
		t.Errorf("want %q in %v", want, a.Changes)
	}
	if bad := wrongAbout(w, last, a, false); len(bad) > 0 {
		t.Error(bad)
	}
}

// The same holds for a node: its own pods, once they wait, come to the paid nodes.
func TestASmallerEditLetsANodeGo(t *testing.T) {
	w := scenario.Scripted(t, "type c.l cpu=8000 mem=16384 milliusd=320", "type m.m cpu=4000 mem=16384 milliusd=190",
		"type g.m cpu=4000 mem=16384 milliusd=185", "type c.m cpu=4000 mem=8192 milliusd=160", "type f0.large cpu=2000 mem=8192 milliusd=94",
		"type d.x cpu=9000 mem=16384 milliusd=2000", "commitment paid type=f0.large flexible room=64",
		"pool p\nlimit memory 49152\nrequire type Exists min=3", "node n type=d.x zone=a pool=p ready=7200", "pods x on=n n=5 cpu=1600 mem=2816 ready")
	w.Snapshot.Claims[0].Created, w.Snapshot.Nodes[0].Created = w.Snapshot.Now.Add(-3*time.Hour), w.Snapshot.Now.Add(-3*time.Hour)
	w.Snapshot.Pools[0].Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "100%"}}}
	a := ForNode(w.Snapshot, disruption.Memory{}, w.Market, "claim-n", Limits{})
	want := "change spec.template.spec.requirements[key=node.kubernetes.io/instance-type].minValues of NodePool p from 3 to 1: "
	if !slices.ContainsFunc(a.Changes, func(c Change) bool { return strings.HasPrefix(c.String(), want) }) {
		t.Errorf("want %q in %v", want, a.Changes)
	}
}
