package binpack

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

var tiedWorlds = shortrun.NewCount("tied-worlds", 800, 48, "small worlds of pods that are tied to zones")

// tiedGroup is some equal pods of a small world.
type tiedGroup struct {
	n      int
	zones  string // where they can be, a letter each; empty for everywhere
	volume bool   // their volume ties them, not their selector
	skew   int    // MaxSkew of their spread over zones; 0 for none, they only count for that of others
}

// tiedWorld is a cluster so small that every order of arrival can be tried: pods that all count for one spread over zones.
type tiedWorld struct {
	zones   string
	running []int // by zone
	min     int   // minDomains
	ignores bool  // nodeAffinityPolicy Ignore
	groups  []tiedGroup
}

// tiedWorldOf is a world of the product of all choices, another one for each n below their number.
func tiedWorldOf(n int) tiedWorld {
	choose := func(of int) int {
		i := n % of
		n /= of
		return i
	}
	ties := [][]tiedGroup{
		{{n: 1, zones: "a"}}, {{n: 2, zones: "a"}}, {{n: 2, zones: "a"}, {n: 1, zones: "b"}},
		{{n: 1, zones: "a"}, {n: 1, zones: "b"}}, {{n: 2, zones: "ab"}}, {{n: 2, zones: "ab"}, {n: 1, zones: "b"}},
		{{n: 2, zones: "ab"}, {n: 1, zones: "bc"}}, {{n: 3, zones: "b"}}, {{n: 2, zones: "c"}, {n: 2, zones: "bc"}},
	}[choose(9)]
	var w tiedWorld
	free := tiedGroup{skew: 1 + choose(2), n: choose(4)}
	w.running = [][]int{{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 2, 1}}[choose(4)]
	volume, skew := choose(2) == 0, []int{0, 1, 2, free.skew}[choose(4)]
	w.ignores = choose(3) == 0
	if i := choose(4); i == 0 && (volume || w.ignores) { // more than there are fill each zone at once
		w.min = 3
	}
	for _, g := range ties {
		g.volume, g.skew = volume, skew
		w.groups = append(w.groups, g)
	}
	w.zones = []string{"abc", "abc", "abc", "abcd"}[choose(4)]
	w.running = append(w.running, make([]int, len(w.zones)-3)...)
	w.groups = append(w.groups, free, tiedGroup{n: choose(3)})
	return w
}

// text is the world as the directives of a scenario file.
func (w tiedWorld) text() []string {
	script := []string{fmt.Sprintf("type m cpu=2000 mem=8192 milliusd=96 zones=(%s)", strings.Join(strings.Split(w.zones, ""), ",")),
		"pool default"}
	for z, n := range w.running {
		for i := range n {
			script = append(script, fmt.Sprintf("node n%c%d type=m zone=%c pool=default", w.zones[z], i, w.zones[z]),
				fmt.Sprintf("pods old%c%d on=n%c%d cpu=1900 mem=500\nlabel app=db", w.zones[z], i, w.zones[z], i))
		}
	}
	for i, g := range w.groups {
		if g.n == 0 {
			continue
		}
		s := fmt.Sprintf("pods g%d n=%d cpu=1500 mem=500\nlabel app=db", i, g.n)
		if g.zones != "" {
			how := "affinity"
			if g.volume {
				how = "volume"
			}
			s += fmt.Sprintf("\n%s zone In %s", how, strings.Join(strings.Split(g.zones, ""), " "))
		}
		if g.skew > 0 {
			s += fmt.Sprintf("\nspread zone skew=%d", g.skew)
			if w.min > 0 {
				s += fmt.Sprintf(" min=%d", w.min)
			}
			if w.ignores {
				s += " ignore-affinity"
			}
			s += " app=db"
		}
		script = append(script, s)
	}
	return script
}

// most is how many of the pods find a place in the best order of arrival, and keep every spread whoever comes first.
func (w tiedWorld) most() int {
	return w.mostFrom(tiedPods{}, map[tiedPods]bool{})
}

// tiedPods counts the pods that are placed, by group and zone.
type tiedPods [5][4]int8

func (w tiedWorld) mostFrom(placed tiedPods, seen map[tiedPods]bool) int {
	if seen[placed] {
		return 0
	}
	seen[placed] = true
	count, best, all, valid := slices.Clone(w.running), 0, 0, true
	for i := range w.groups {
		for z := range count {
			count[z] += int(placed[i][z])
			all += int(placed[i][z])
		}
	}
	for i, g := range w.groups {
		n := 0
		for z := range count {
			n += int(placed[i][z])
			valid = valid && (placed[i][z] == 0 || w.admits(g, count, z, 0))
		}
		for z := range count {
			if n < g.n && w.admits(g, count, z, 1) {
				placed[i][z]++
				best = max(best, w.mostFrom(placed, seen))
				placed[i][z]--
			}
		}
	}
	if valid {
		best = max(best, all)
	}
	return best
}

// admits reports whether so many more pods of the group may be in zone z.
func (w tiedWorld) admits(g tiedGroup, count []int, z, more int) bool {
	allows := func(z int) bool { return g.zones == "" || strings.Contains(g.zones, w.zones[z:z+1]) }
	if !allows(z) || g.skew == 0 {
		return allows(z)
	}
	var eligible []int
	for y, n := range count {
		if (g.volume || w.ignores || allows(y)) && w.mayHaveNode(y) {
			eligible = append(eligible, n)
		}
	}
	least := slices.Min(eligible)
	if len(eligible) < w.min {
		least = 0
	}
	return count[z]+more-least <= g.skew
}

// mayHaveNode reports whether zone z counts for kube-scheduler: it has a node, or may get one.
func (w tiedWorld) mayHaveNode(z int) bool {
	return w.running[z] > 0 || slices.ContainsFunc(w.groups, func(g tiedGroup) bool {
		return g.n > 0 && (g.zones == "" || strings.Contains(g.zones, w.zones[z:z+1]))
	})
}

// Pods that volumes or selectors tie to zones keep their places where free pods of the same spread have others: as many
// pods are placed as in the best order of arrival.
func TestTiedWorlds(t *testing.T) {
	const product = 9 * 2 * 4 * 4 * 2 * 4 * 4 * 3 * 3 * 4
	const stride = 34871 // shares no factor with the product, so that every choice comes early
	for i := range tiedWorlds.N() {
		small := tiedWorldOf(i * stride % product)
		w, err := scenario.FromText(small.text())
		if err != nil {
			t.Fatal(err)
		}
		waiting := 0
		for _, g := range small.groups {
			waiting += g.n
		}
		p := decide(w)
		bad := w.Check(p)
		if got, want := waiting-len(p.Unplaced), small.most(); got < want {
			bad = append(bad, fmt.Sprintf("%d pods placed, %d can be", got, want))
		}
		if len(bad) > 0 {
			t.Errorf("world %d: %s\n%s\n\n%s", i, strings.Join(bad, "\n  "), strings.Join(small.text(), "\n----\nok\n\n"), p)
		}
	}
}
