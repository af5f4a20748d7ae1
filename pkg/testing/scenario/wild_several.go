package scenario

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// severalText adds to the script of a world, by chance: labels of which every type has several values, with pods that
// do not agree about them; pods alike but for the zone of their volumes; pods that only capacity reservations may take;
// pools with minValues and limits; and claims on their way that may become several types.
func severalText(seed uint64, script []string) []string {
	r := rand.New(rand.NewPCG(seed, 17))
	var out []string
	if r.IntN(3) == 0 {
		out = append(out, reservedText(r)...)
	}
	if r.IntN(4) == 0 {
		out = append(out, fmt.Sprintf("pods db n=%d cpu=%d mem=512\nvolumes zone %s\n%s", 2+r.IntN(5),
			100+r.IntN(20)*100, oneOf(r, "a b", "a b c", "c a"),
			oneOf(r, "attach ebs", "spread zone skew=1 app=db", "apart host app=db", "near zone app=db",
				"tolerate all")))
	}
	if r.IntN(3) == 0 {
		out = append(out, limitedText(r)...)
	}
	out = append(out, claimsText(r, script)...)
	out = append(out, guardText(seed)...)
	out = append(out, refusedText(seed)...)
	out = append(out, zoneIDText(seed)...)
	if r.IntN(3) == 0 { // the last, for all types that there are
		out = append(out, labelledText(r)...)
	}
	return out
}

// guardText is, in a sixth of the worlds, a DaemonSet and pods that required anti-affinity of either keeps apart.
func guardText(seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 23))
	if r.IntN(6) > 0 {
		return nil
	}
	key, where := oneOf(r, "host", "host", "zone", "capacity"),
		oneOf(r, "tolerate all", "select zone=a", "select arch=amd64", "affinity type In c.m m.m\naffinity zone In b",
			"select pool=p0")
	guard, pods := fmt.Sprintf("daemon guard cpu=50 mem=64\n%s", where),
		fmt.Sprintf("pods shy n=%d cpu=%d mem=256\ntolerate all", 1+r.IntN(4), 100+r.IntN(20)*100)
	if r.IntN(2) == 0 {
		return []string{guard + "\napart " + key + " app=shy", pods}
	}
	return []string{guard, pods + "\napart " + key + " app=guard"}
}

// zoneIDText are, in a quarter of the worlds, pods that look at the ids of zones, some beside rules about their names.
func zoneIDText(seed uint64) (out []string) {
	r := rand.New(rand.NewPCG(seed, 31))
	if r.IntN(4) > 0 {
		return nil
	}
	for i := range 1 + r.IntN(2) {
		name := fmt.Sprintf("byid%d", i)
		out = append(out, fmt.Sprintf("pods %s n=%d cpu=%d mem=256\ntolerate all\n%s", name, 1+r.IntN(5),
			100+r.IntN(20)*100,
			oneOf(r, "select zone-id=use1-a", "affinity zone-id NotIn use1-b", "affinity zone-id In use1-a use1-c",
				"spread zone-id skew=1 app="+name, "apart zone-id app="+name, "near zone-id app="+name,
				"select zone-id=use1-b\nvolume zone In a b",
				"spread zone skew=1 app="+name+"\naffinity zone-id NotIn use1-c")))
	}
	return out
}

// labelledText are labels of which every type has several values, and who looks at them.
func labelledText(r *rand.Rand) []string {
	out := []string{oneOf(r, "types\nlabel tenancy default dedicated", "types\nlabel partition 1 2 3",
		"types\nlabel tenancy default dedicated\nlabel partition 1 2 3")}
	key := "tenancy"
	if !strings.Contains(out[0], key) || r.IntN(2) == 0 && strings.Contains(out[0], "partition") {
		key = "partition"
	}
	values := map[string][]string{"tenancy": {"default", "dedicated"}, "partition": {"1", "2", "3"}}[key]
	one := func() string { return oneOf(r, values...) }
	if r.IntN(4) == 0 {
		out = append(out, fmt.Sprintf("pool narrow weight=%d\nrequire %s %s %s", r.IntN(2), key,
			oneOf(r, "In", "NotIn"), one()))
	}
	if r.IntN(4) == 0 {
		out = append(out, fmt.Sprintf("node labelled type=m.m zone=a pool=p0\nlabel %s=%s", key, one()))
	}
	if r.IntN(5) == 0 {
		out = append(out, fmt.Sprintf("daemon watch cpu=100 mem=128\ntolerate all\nselect %s=%s", key, one()))
	}
	for i := range 2 + r.IntN(4) {
		name := fmt.Sprintf("several%d", i)
		app := oneOf(r, name, name, "several0", "several1")
		s := fmt.Sprintf("pods %s n=%d cpu=%d mem=%d priority=%d", name, 1+r.IntN(4), 100+r.IntN(20)*100,
			128+r.IntN(10)*256, r.IntN(2))
		s += "\n" + oneOf(r, "tolerate all", "tolerate all\nselect zone=a", "port 80")
		s += "\n" + oneOf(r, fmt.Sprintf("select %s=%s", key, one()), fmt.Sprintf("select %s=%s", key, one()),
			fmt.Sprintf("affinity %s In %s %s", key, one(), one()),
			fmt.Sprintf("affinity %s NotIn %s", key, one()),
			fmt.Sprintf("affinity %s In %s\naffinity %s In %s", key, one(), key, one()),
			fmt.Sprintf("affinity %s Exists", key),
			fmt.Sprintf("prefer 5 %s In %s", key, one()),
			fmt.Sprintf("spread %s skew=%d app=%s", key, 1+r.IntN(2), app),
			fmt.Sprintf("spread %s skew=1 min=3 app=%s", key, name),
			fmt.Sprintf("apart %s app=%s", key, app), fmt.Sprintf("near %s app=%s", key, app),
			fmt.Sprintf("spread %s skew=1 app=%s\nspread zone skew=1 app=%s", key, name, name))
		out = append(out, s)
	}
	return out
}

// reservedText are reservations of several types and zones, and pods that only those may take.
func reservedText(r *rand.Rand) []string {
	out := []string{
		fmt.Sprintf("type cr.m cpu=4000 mem=16384 milliusd=%d reserved=(cr-2,%c,%d)", 200+r.IntN(20), 'a'+r.IntN(3),
			r.IntN(4)),
		fmt.Sprintf("type cr.s cpu=2000 mem=8192 milliusd=%d reserved=(cr-3,%c,%d)", 100+r.IntN(10), 'a'+r.IntN(3),
			1+r.IntN(4)),
	}
	booked := "require capacity In reserved"
	if r.IntN(2) == 0 {
		booked = "require capacity In reserved on-demand\nrequire type In cr.m cr.s"
		out = append(out, fmt.Sprintf("unavailable cr.s capacity=on-demand zone=%c", 'a'+r.IntN(3)),
			"unavailable cr.m capacity=on-demand")
	}
	out = append(out, fmt.Sprintf("pool booked weight=%d\n%s\ntaint booked:NoSchedule", r.IntN(2), booked))
	if r.IntN(3) == 0 {
		out = append(out, "node inside type=cr.s zone=a capacity=reserved reservation=cr-3 pool=booked")
	}
	for i := range 1 + r.IntN(3) {
		name := fmt.Sprintf("booked%d", i)
		app := oneOf(r, name, name, "booked0")
		out = append(out, fmt.Sprintf("pods %s n=%d cpu=%d mem=%d priority=%d\ntolerate booked:NoSchedule\nselect pool=booked\n%s", name, 1+r.IntN(5), 300+r.IntN(16)*100,
			128+r.IntN(10)*256, r.IntN(2), oneOf(r, "spread zone skew=1 app="+app, "spread zone skew=2 app="+app,
				"apart zone app="+app, "near zone app="+app, "near host app="+app,
				"apart host app="+app, "select capacity=reserved", "select zone=a",
				"spread karpenter.k8s.aws/capacity-reservation-id skew=1 app="+app)))
	}
	return out
}

// limitedText is a pool with minValues and limits, and pods for it.
func limitedText(r *rand.Rand) []string {
	pool := fmt.Sprintf("pool ample\nrequire %s Exists min=%d\nlimit %s\ntaint ample:NoSchedule",
		oneOf(r, "type", "cpu", "type"), 2+r.IntN(2),
		oneOf(r, "cpu 8000", "cpu 12000", "cpu 20000", "memory 49152", "nodes 2", "cpu 14000\nlimit memory 65536"))
	pods := fmt.Sprintf("pods ample n=%d cpu=%d mem=%d\ntolerate ample:NoSchedule\nselect pool=ample", 1+r.IntN(8),
		200+r.IntN(25)*100, 256+r.IntN(10)*512)
	out := []string{pool + oneOf(r, "", "\nrequire capacity In on-demand"), pods}
	if r.IntN(3) == 0 {
		out = append(out, fmt.Sprintf("rules %s", oneOf(r, "best-effort", "spot-pool-share=50")))
	}
	if r.IntN(2) == 0 {
		out = append(out, fmt.Sprintf("claim ample-1 pool=ample types=(%s) cpu=1500 mem=1024 pods=1 nominated=(default/ample-1)", oneOf(r, "c.m,m.s", "m.s,m.m,r.m", "c.l,c.s")))
	}
	return out
}

// claimsText are claims of the first pool that are not launched and may become several types, where that pool demands
// nothing they contradict.
func claimsText(r *rand.Rand, script []string) []string {
	plain := slices.ContainsFunc(script, func(s string) bool {
		return strings.HasPrefix(s, "pool p0") &&
			!strings.Contains(s, "require")
	})
	if !plain || r.IntN(2) == 0 {
		return nil
	}
	var out []string
	for i := range 1 + r.IntN(2) {
		zones, whose := oneOf(r, "a", "a,b", "a,b,c"), "default/nobody-1"
		if zones == "a" { // those of pods with rules over zones are of one zone
			whose = oneOf(r, "default/app0-1", "default/app1-1,default/app0-2", whose)
		}
		out = append(out, fmt.Sprintf("claim asked-%d pool=p0 types=(%s) zones=(%s) cpu=%d mem=1024 pods=1 nominated=(%s)", i, oneOf(r, "c.m,m.s", "m.s,m.m,r.m", "c.l,c.s", "g.m,c.s"),
			zones, 500+r.IntN(8)*100, whose))
	}
	return out
}
