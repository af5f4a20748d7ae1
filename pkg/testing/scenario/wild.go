package scenario

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Wild returns a world that may have everything the words of scenarios can say: what Random has, rarer things, and what
// types, volumes, reservations and claims may have several of.
func Wild(seed uint64) (*World, error) { return FromText(WildText(seed)) }

// WildText is the world of the seed as the directives of a scenario file.
func WildText(seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 11))
	script := RandomText(seed)
	sometimes := func(n int, format string, args ...any) {
		if r.IntN(n) == 0 {
			script = append(script, fmt.Sprintf(format, args...))
		}
	}
	script = append(script, "type p.m cpu=8000 mem=32768 milliusd=900 spot=310\nresource nvidia.com/gpu 2",
		"namespace other\nlabel env=prod")
	sometimes(4, "type v.m cpu=4000 mem=16384 milliusd=205 zones=(a,b) reserved=(cr-1,%c,%d)", 'a'+r.IntN(2), r.IntN(4))
	sometimes(4, "unavailable g.m capacity=spot")
	sometimes(8, "unavailable m.s")
	sometimes(8, "class broken broken=(no subnets)")
	sometimes(6, "pool still static weight=50")
	sometimes(8, "pool gone deleting weight=60")
	sometimes(8, "pool early not-ready=(no AMI) weight=70")
	sometimes(4, "overlay cheap weight=%d price=0.0%d\nrequire type In %s", r.IntN(2), 1+r.IntN(9),
		oneOf(r, "c.s", "m.m", "r.m"))
	sometimes(5, "overlay less weight=%d change=-%d%%\nrequire capacity In %s", r.IntN(2), r.IntN(60),
		oneOf(r, "spot", "on-demand"))
	sometimes(6, "overlay fuse weight=1\nrequire cpu Gt %d\ncapacity example.com/fuse 3", r.IntN(6))
	sometimes(4, "node alone type=%s zone=%c unmanaged\nattaches ebs %d\nlabel team=green", oneOf(r, "c.m", "r.m"),
		'a'+r.IntN(2), r.IntN(3))
	sometimes(5, "node raw type=c.m zone=c pool=p0 unregistered")
	if plain := slices.ContainsFunc(script, func(s string) bool {
		return strings.HasPrefix(s, "pool p0") && !strings.Contains(s, "require")
	}); plain { // a claim that contradicts its pool is nothing that happens
		sometimes(5, "claim early-2 pool=p0 type=c.m zone=c")
	}
	sometimes(3, "daemon logs cpu=50 mem=128\nport 9100\n%s",
		oneOf(r, "tolerate all", "select zone=a", "select arch=amd64", "affinity cpu Gt 2"))
	sometimes(6, "daemon gpu cpu=50 mem=64\ntolerate all\naffinity type In p.m")
	sometimes(5, "budget calm blocking\napp=old00")
	for i := range r.IntN(4) {
		script = append(script, wildPods(r, fmt.Sprintf("wild%d", i)))
	}
	sometimes(12, "rules ignore-preferences")
	sometimes(12, "rules max-claims=%d", 1+r.IntN(3))
	script = append(script, wildCommitments(r)...)
	return append(script, severalText(seed, script)...)
}

// wildCommitments are Reserved Instances of each sort and Savings Plans, in a third of the worlds, with what draws on
// them elsewhere.
func wildCommitments(r *rand.Rand) (script []string) {
	if r.IntN(3) > 0 {
		return nil
	}
	kind := func() string { return oneOf(r, "c.s", "c.m", "m.m", "r.m") }
	for i := range 1 + r.IntN(3) {
		switch r.IntN(5) {
		case 0:
			script = append(script, fmt.Sprintf("commitment ri%d type=%s room=%d", i, kind(), 1+r.IntN(3)))
		case 1:
			script = append(script, fmt.Sprintf("commitment zonal%d type=%s zone=%c room=%d", i, kind(), 'a'+r.IntN(3),
				1+r.IntN(2)))
		case 2:
			script = append(script, fmt.Sprintf("type f%d.large cpu=2000 mem=8192 milliusd=94\n", i),
				fmt.Sprintf("type f%d.xlarge cpu=4000 mem=16384 milliusd=188\n", i),
				fmt.Sprintf("commitment flexible%d type=f%d.large flexible room=%d", i, i, 16*(1+r.IntN(5))))
		default:
			script = append(script, fmt.Sprintf(
				"commitment plan%d room=%d\nrate c.s 48000\nrate c.m 96000\nrate %s 61000", i, 20000*r.IntN(20),
				oneOf(r, "m.m", "r.m", "g.m")))
		}
	}
	if r.IntN(3) == 0 {
		script = append(script, fmt.Sprintf("elsewhere %s zone=%c n=%d", kind(), 'a'+r.IntN(3), 1+r.IntN(3)))
	}
	return script
}

// wildPods is a directive of pods with constraints that randomPods does not have.
func wildPods(r *rand.Rand, name string) string {
	app := oneOf(r, name, "app0", "app1", "wild0", "wild1")
	s := fmt.Sprintf("pods %s n=%d cpu=%d mem=%d priority=%d", name, 1+r.IntN(6), r.IntN(40)*100, r.IntN(30)*200,
		r.IntN(3))
	s += oneOf(r, "", "", "", "", " ns=other", " ns=other", " virtual", " deleting", " nominated=n0",
		" owner=DaemonSet", " bound")
	for _, line := range []string{
		"near zone ns=* app=" + app, "apart host ns=other app=" + app, "apart zone ns=* app=" + app,
		"near zone ns=other ns=default app=" + app,
		"near host app=" + app + "\nnear zone app=" + app, "attach ebs", "attach ebs shared", "attach nfs",
		"resource nvidia.com/gpu 1", "resource example.com/fuse 1",
		"port 9100", "port 80", "spread zone skew=1 ignore-affinity app=" + name + "\nselect zone=" +
			oneOf(r, "a", "b"),
		"spread zone skew=1 honor-taints app=" + name, "spread arch skew=1 app=" + name, "spread zone skew=2 app=" +
			app, "spread type skew=3 app=" + name,
		"apart capacity app=" + name, "prefer-near 10 zone app=" + app, "prefer 50 capacity In on-demand",
		"select capacity=reserved", "prefer 20 arch In arm64\nprefer 10 zone In c",
		"select arch=arm64", "affinity type In c.l m.m\naffinity arch In arm64", "affinity team DoesNotExist",
		"affinity team Exists",
		"affinity shard Gt 3", "volume zone In a b\nvolume zone In c", "tolerate spare:PreferNoSchedule",
		"tolerate cni", "unmodelled a device claim",
		"affinity cpu Gt 1 & cpu Lt 5", "select pool=" + oneOf(r, "p0", "p1", "nowhere"), "affinity pool DoesNotExist",
		"affinity zone NotIn a b",
	} {
		if r.IntN(14) == 0 {
			s += "\n" + line
		}
	}
	return s
}
