package scenario

import (
	"fmt"
	"math/rand/v2"
)

// NearlyFull returns a large world of nodes that are nearly full: 200 to 800 of them, 70 to 99 % full, beside 30 to 300
// groups of pods that wait. A part of the groups has preferences, pairs of them are of one size, and some are tied to a
// capacity type, a zone or an architecture.
func NearlyFull(seed uint64) (*World, error) { return FromText(NearlyFullText(seed)) }

// fullTypes are the instance types of nearly full worlds: cpu in millicores, memory in MiB.
func fullTypes() []fullType {
	return []fullType{
		{"c.l", 1900, 3000, "milliusd=85 spot=33"}, {"c.xl", 3900, 6600, "milliusd=170 spot=70"},
		{"c.4xl", 15800, 28000, "milliusd=680 spot=290"}, {"m.l", 1900, 7000, "milliusd=96 spot=41"},
		{"m.xl", 3900, 14500, "milliusd=192 spot=77"}, {"m.2xl", 7900, 30000, "milliusd=384 spot=150"},
		{"r.xl", 3900, 30500, "milliusd=252 spot=88 zones=(a,b)"},
		{"g.xl", 3900, 14500, "milliusd=154 spot=69 arch=arm64"},
	}
}

type fullType struct {
	name     string
	cpu, mem int
	rest     string
}

// NearlyFullText is the world of the seed as the directives of a scenario file.
func NearlyFullText(seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 13))
	script := []string{"pool default", "pool tier weight=5\nlabel tier=system\ntaint tier:NoSchedule\nrequire capacity In on-demand"}
	types := fullTypes()
	for _, t := range types {
		script = append(script, fmt.Sprintf("type %s cpu=%d mem=%d %s", t.name, t.cpu, t.mem, t.rest))
	}
	if r.IntN(4) == 0 {
		script[0] += "\nlimit cpu 2000000"
	}
	// few large worlds: work grows faster than nodes and groups
	nodes, groups := 200+int(600*r.Float64()*r.Float64()), 30+int(270*r.Float64()*r.Float64()*r.Float64())
	for i := range nodes {
		t := types[r.IntN(len(types))]
		script = append(script, fmt.Sprintf("node n%03d type=%s zone=%c capacity=%s pool=default", i, t.name,
			'a'+r.IntN(2),
			oneOf(r, "spot", "spot", "on-demand")))
		full := func(all int) int { return all * (70 + r.IntN(30)) / 100 }
		script = append(script, fmt.Sprintf("pods old%03d on=n%03d cpu=%d mem=%d\nlabel app=%s", i, i, full(t.cpu),
			full(t.mem), fmt.Sprintf("app%03d", r.IntN(groups))))
	}
	size := ""
	for i := range groups {
		if i == 0 || r.IntN(3) > 0 { // else of the size of the one before
			size = fmt.Sprintf("cpu=%d mem=%d", 10*(3+r.IntN(1<<r.IntN(9))), 16*(4+r.IntN(1<<r.IntN(9))))
		}
		script = append(script, fullPods(r, fmt.Sprintf("app%03d", i), size))
	}
	return script
}

// fullPods is a directive of pods of a nearly full world.
func fullPods(r *rand.Rand, name, size string) string {
	s := fmt.Sprintf("pods %s n=%d %s", name, 1+r.IntN(1<<r.IntN(7)), size)
	for _, line := range []string{
		"spread zone skew=1 app=" + name, "spread host skew=1 app=" + name, "spread zone skew=1 soft app=" + name,
		"apart host app=" + name, "near zone app=" + name, "select zone=" + oneOf(r, "a", "b", "c"),
		"select capacity=" + oneOf(r, "spot", "on-demand"), "select arch=" + oneOf(r, "amd64", "arm64"),
		"select tier=system\ntolerate tier", "affinity cpu Gt " + oneOf(r, "1", "3"),
	} {
		if r.IntN(10) == 0 {
			s += "\n" + line
		}
	}
	for _, line := range []string{
		"prefer 10 capacity In on-demand", "prefer 50 zone In a", "prefer 20 arch In arm64", "prefer 5 type In m.xl",
		"prefer-apart 10 host app=" + name, "prefer-near 10 zone app=" + name,
	} {
		if r.IntN(12) == 0 {
			s += "\n" + line
		}
	}
	return s
}
