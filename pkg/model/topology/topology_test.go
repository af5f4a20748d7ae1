package topology

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

func TestSpread(t *testing.T) {
	all := []bool{true, true, true}
	for _, c := range []struct {
		name   string
		spread Spread
		count  []int
		want   []bool // by domain: may one more go there
	}{
		{"level", Spread{MaxSkew: 1, Self: true, Eligible: all}, []int{2, 2, 2}, []bool{true, true, true}},
		{"behind", Spread{MaxSkew: 1, Self: true, Eligible: all}, []int{2, 1, 2}, []bool{false, true, false}},
		{"skew 2", Spread{MaxSkew: 2, Self: true, Eligible: all}, []int{2, 1, 3}, []bool{true, true, false}},
		{"an empty domain that does not count", Spread{MaxSkew: 1, Self: true, Eligible: []bool{true, true, false}}, []int{2, 2, 0}, []bool{true, true, true}},
		{"too few domains", Spread{MaxSkew: 1, MinDomains: 4, Self: true, Eligible: all}, []int{1, 1, 0}, []bool{false, false, true}},
		{"enough domains", Spread{MaxSkew: 1, MinDomains: 3, Self: true, Eligible: all}, []int{1, 1, 1}, []bool{true, true, true}},
		{"others counted", Spread{MaxSkew: 1, Eligible: all}, []int{1, 0, 2}, []bool{true, true, false}},
		{"none eligible", Spread{MaxSkew: 1, Self: true, Eligible: []bool{false, false, false}}, []int{0, 1, 0}, []bool{true, false, true}},
	} {
		var got []bool
		for d := range c.count {
			got = append(got, c.spread.Admits(c.count, d))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestGroups(t *testing.T) {
	web := &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", "web")}}
	there := []cluster.Namespace{{Name: "blue", Labels: map[string]string{"team": "b"}}, {Name: "own"}, {Name: "red", Labels: map[string]string{"team": "r"}}}
	red := &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("team", "r")}}
	for _, c := range []struct {
		name string
		term cluster.AffinityTerm
		want []string // namespaces in which a web pod is selected
	}{
		{"own", cluster.AffinityTerm{Selector: web}, []string{"own"}},
		{"named", cluster.AffinityTerm{Selector: web, Namespaces: []string{"blue"}}, []string{"blue"}},
		{"selected", cluster.AffinityTerm{Selector: web, NamespaceSelector: red}, []string{"red"}},
		{"both", cluster.AffinityTerm{Selector: web, Namespaces: []string{"blue"}, NamespaceSelector: red}, []string{"blue", "red"}},
		{"all", cluster.AffinityTerm{Selector: web, NamespaceSelector: &cluster.Selector{}}, []string{"blue", "own", "red"}},
		{"no selector", cluster.AffinityTerm{}, nil},
	} {
		g := OfTerm(c.term, "own", IndexNamespaces(there))
		var got []string
		for _, n := range there {
			if g.Selects(n.Name, map[string]string{"app": "web"}) {
				got = append(got, n.Name)
			}
			if g.Selects(n.Name, map[string]string{"app": "db"}) {
				t.Errorf("%s: selects another app", c.name)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	a, b := OfTerm(cluster.AffinityTerm{Selector: web}, "own", nil), OfSpread(cluster.Spread{Selector: web}, "own")
	if a.ID() != b.ID() || a.ID() == OfSpread(cluster.Spread{Selector: red}, "own").ID() || a.ID() == OfSpread(cluster.Spread{}, "own").ID() {
		t.Error("ids do not tell groups apart")
	}
}

func TestOver(t *testing.T) {
	s := Spread{MaxSkew: 1, Self: true, Eligible: []bool{true, true}}
	if got := s.Over([]int{5, 1}, 0, 0); got != 3 {
		t.Errorf("5 beside 1 is %d over, want 3", got)
	}
}

func TestAffinityAllows(t *testing.T) {
	for _, c := range []struct {
		here                    int
		anywhere, belongs, want bool
	}{
		{here: 1, anywhere: true, want: true},
		{anywhere: true, belongs: true, want: false}, // it joins those that are there
		{belongs: true, want: true},                  // it is the first
		{},
	} {
		if got := AffinityAllows(c.here, c.anywhere, c.belongs); got != c.want {
			t.Errorf("%d here, anywhere %t, belongs %t: %t, want %t", c.here, c.anywhere, c.belongs, got, c.want)
		}
	}
}

// A term that selects all of ten thousand namespaces names none of them: a pod may have dozens of such terms.
func TestAGroupOfAllNamespacesIsSmall(t *testing.T) {
	var there []cluster.Namespace
	for i := range 10_000 {
		there = append(there, cluster.Namespace{Name: fmt.Sprintf("ns-%05d", i)})
	}
	all := IndexNamespaces(there)
	g := OfTerm(cluster.AffinityTerm{Selector: &cluster.Selector{}, NamespaceSelector: &cluster.Selector{}}, "own", all)
	for range 31 {
		g = g.And(OfTerm(cluster.AffinityTerm{Selector: &cluster.Selector{}, NamespaceSelector: &cluster.Selector{}}, "own", all))
	}
	if n := len(g.ID()); n > 1000 || !g.Selects("ns-09999", nil) || g.Selects("gone", nil) {
		t.Errorf("an id of %d bytes", n)
	}
}

func TestRoom(t *testing.T) {
	for _, c := range []struct {
		spread            Spread
		here, least, want int
	}{
		{Spread{MaxSkew: 3, Self: true}, 2, 1, 2},
		{Spread{MaxSkew: 1, Self: true}, 4, 1, 0},
		{Spread{MaxSkew: 1}, 2, 1, math.MaxInt32}, // its pods do not count
		{Spread{MaxSkew: 1}, 3, 1, 0},
	} {
		if got := c.spread.Room(c.here, c.least); got != c.want {
			t.Errorf("%+v: room for %d with %d here and %d elsewhere, want %d", c.spread, got, c.here, c.least, c.want)
		}
	}
}

// A pod of a group of affinity is one that all terms select, in a namespace of each.
func TestOfTerms(t *testing.T) {
	selects := func(key string) *cluster.Selector {
		return &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of(key, "x")}}
	}
	g := OfTerms([]cluster.AffinityTerm{{Key: "zone", Selector: selects("a")}, {Key: "rack", Selector: selects("b"), Namespaces: []string{"other", "own"}}}, "own", nil)
	both := map[string]string{"a": "x", "b": "x"}
	if !g.Selects("own", both) || g.Selects("other", both) || g.Selects("own", map[string]string{"a": "x"}) {
		t.Errorf("%s selects others", g.ID())
	}
}

// A spread counts the nodes that its policies leave in and that have the labels of the other required spreads.
func TestCountedNodes(t *testing.T) {
	team, zone := requirements.Of("team", "red"), cluster.Spread{Key: "zone", HonorTaints: true}
	p := &cluster.Pod{NodeSelector: map[string]string{"disk": "ssd"}, NodeAffinity: [][]requirements.Requirement{{team}},
		Tolerations: []cluster.Toleration{{Key: "own"}},
		Spread:      []cluster.Spread{zone, {Key: "rack"}, {Key: "soft", Soft: true}, {Key: "kubernetes.io/hostname"}}}
	anyTaint, soft := cluster.Toleration{Operator: "Exists"}, cluster.Toleration{Operator: "Exists", Effect: "PreferNoSchedule"}
	for _, c := range []struct {
		name   string
		spread cluster.Spread
		want   cluster.Pod
	}{
		{"taints", zone, cluster.Pod{NodeSelector: p.NodeSelector, Tolerations: []cluster.Toleration{{Key: "own"}, soft},
			NodeAffinity: [][]requirements.Requirement{{team, requirements.Any("rack")}}}},
		{"no affinity", cluster.Spread{Key: "rack", IgnoreNodeAffinity: true}, cluster.Pod{Tolerations: []cluster.Toleration{anyTaint},
			NodeAffinity: [][]requirements.Requirement{{requirements.Any("zone")}}}},
		{"soft", cluster.Spread{Key: "zone", Soft: true}, cluster.Pod{NodeSelector: p.NodeSelector, Tolerations: []cluster.Toleration{anyTaint},
			NodeAffinity: p.NodeAffinity}},
	} {
		if diff := cmp.Diff(c.want, CountedNodes(c.spread, p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
