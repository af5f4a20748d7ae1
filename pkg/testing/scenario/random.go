package scenario

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Random returns a world made of every kind of constraint by chance, the same one for the same seed.
func Random(seed uint64) (*World, error) { return FromText(RandomText(seed)) }

// Scripted is the world of the lines.
func Scripted(t testing.TB, lines ...string) *World {
	t.Helper()
	w, err := FromText(lines)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// FromText returns the world of directives as a scenario file has them, each with its lines.
func FromText(script []string) (*World, error) {
	w := New()
	for _, s := range script {
		head, rest, _ := strings.Cut(s, "\n")
		cmd, args, err := datadriven.ParseLine(head)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", head, err)
		}
		if known, err := w.Do(&datadriven.TestData{Cmd: cmd, CmdArgs: args, Input: rest}); err != nil || !known {
			return nil, fmt.Errorf("%q, known %t: %w", head, known, err)
		}
	}
	return w, nil
}

// RandomText is the world of the seed as the directives of a scenario file.
func RandomText(seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 7))
	var script []string
	say := func(format string, args ...any) { script = append(script, fmt.Sprintf(format, args...)) }
	for _, t := range []string{
		"type c.s cpu=2000 mem=4096 milliusd=80 spot=30", "type c.m cpu=4000 mem=8192 milliusd=160 spot=62",
		"type c.l cpu=8000 mem=16384 milliusd=320 spot=118", "type m.s cpu=2000 mem=8192 milliusd=96 spot=41",
		"type m.m cpu=4000 mem=16384 milliusd=190 spot=75 zones=(a,b)", "type r.m cpu=4000 mem=32768 milliusd=250",
		"type g.m cpu=4000 mem=16384 milliusd=77 arch=arm64 spot=20",
	} {
		say("%s", t)
	}
	if r.IntN(3) == 0 {
		say("unavailable c.m zone=%c", 'a'+r.IntN(3))
	}
	values := rand.New(rand.NewPCG(seed, 29)) // of its own, so that the seeds' worlds stay what they were beside it
	for i := range 1 + r.IntN(3) {
		say("%s%s", randomPool(r, i), randomMinValues(values))
	}
	if values.IntN(8) == 0 {
		say("rules best-effort")
	}
	for i := range r.IntN(4) {
		say("node n%d type=m.m zone=%c pool=p0 %s", i, 'a'+r.IntN(2),
			oneOf(r, "", "", "starting", "disrupted", "deleting"))
		for j := range r.IntN(3) {
			say("%s", randomPods(r, fmt.Sprintf("old%d%d", i, j), fmt.Sprintf("on=n%d", i)))
		}
	}
	if r.IntN(2) == 0 {
		say("daemon agent cpu=100 mem=64\ntolerate all")
	}
	for i := range 1 + r.IntN(6) {
		say("%s", randomPods(r, fmt.Sprintf("app%d", i), fmt.Sprintf("n=%d", 1+r.IntN(8))))
	}
	return script
}

func oneOf(r *rand.Rand, words ...string) string { return words[r.IntN(len(words))] }

func randomPool(r *rand.Rand, i int) string {
	s := fmt.Sprintf("pool p%d weight=%d", i, r.IntN(3))
	for _, line := range []string{
		"require capacity In spot", "require capacity In on-demand", "require zone In a b", "require arch In amd64",
		"require team In red blue",
		"require team Exists", "label team=red", "taint dedicated=x:NoSchedule", "taint spare:PreferNoSchedule",
		"startup cni:NoSchedule",
		"limit cpu 12000", "limit nodes 3", "limit memory 65536", "require type Exists min=2",
	} {
		if r.IntN(7) == 0 {
			s += "\n" + line
		}
	}
	return s
}

// randomMinValues is, for a fifth of the pools, minValues of a key that types or their offerings have several values
// of.
func randomMinValues(r *rand.Rand) string {
	if r.IntN(5) > 0 {
		return ""
	}
	return "\nrequire " + oneOf(r, "zone Exists min=2", "zone In a b c min=3", "zone NotIn a min=2",
		"zone-id Exists min=2",
		"zone-id In use1-a use1-b min=2", "capacity Exists min=2", "capacity In spot on-demand min=2",
		"cpu Exists min=2",
		"arch In amd64 arm64 min=2", "type Exists min=3\nrequire zone Exists min=2",
		"capacity Exists min=2\nrequire zone Exists min=3")
}

func randomPods(r *rand.Rand, name, where string) string {
	s := fmt.Sprintf("pods %s %s cpu=%d mem=%d priority=%d", name, where, 50+r.IntN(30)*50, 64+r.IntN(20)*128,
		r.IntN(2))
	other := fmt.Sprintf("app%d", r.IntN(4))
	for _, line := range []string{
		"select zone=" + oneOf(r, "a", "b", "c"), "select capacity=" + oneOf(r, "spot", "on-demand"), "select team=" +
			oneOf(r, "red", "blue", "green"),
		"tolerate dedicated=x:NoSchedule", "tolerate all", "spread zone skew=1 app=" + name,
		"spread zone skew=2 soft app=" + name,
		"spread zone skew=1 min=3 app=" + name, "spread host skew=2 app=" + name, "apart host app=" +
			oneOf(r, name, other), "apart zone app=" + oneOf(r, name, other),
		"near zone app=" + oneOf(r, name, other), "near host app=" + oneOf(r, name, other), "prefer-apart 5 host app=" +
			name, "prefer 5 zone In b",
		"affinity zone In a & arch In amd64\naffinity capacity In on-demand", "port 80", "volume zone In " +
			oneOf(r, "a", "b", "c"), "affinity cpu Gt 2",
		"affinity team NotIn red", "spread team skew=1 app=" + name, "spread capacity skew=1 app=" + name,
	} {
		if r.IntN(11) == 0 {
			s += "\n" + line
		}
	}
	return s
}
