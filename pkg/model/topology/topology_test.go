package topology

import (
	"fmt"
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
		here, anywhere int
		belongs, want  bool
	}{
		{here: 1, anywhere: 1, want: true},
		{here: 0, anywhere: 1, belongs: true, want: false}, // it joins those that are there
		{here: 0, anywhere: 0, belongs: true, want: true},  // it is the first
		{here: 0, anywhere: 0, belongs: false, want: false},
	} {
		if got := AffinityAllows(c.here, c.anywhere, c.belongs); got != c.want {
			t.Errorf("%d here, %d anywhere, belongs %t: %t, want %t", c.here, c.anywhere, c.belongs, got, c.want)
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
