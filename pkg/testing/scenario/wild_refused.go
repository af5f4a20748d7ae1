package scenario

import (
	"fmt"
	"math/rand/v2"
)

// refusedText is, in a third of the worlds, what tempts to ask for NodeClaims that the API server refuses: pools with
// minValues on keys that the claims of their pods leave one value of, and pods that name keys which no claim may name.
func refusedText(seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 29))
	if r.IntN(3) > 0 {
		return nil
	}
	var out []string
	if r.IntN(2) == 0 {
		out = append(out, "rules best-effort")
	}
	out = append(out, fmt.Sprintf("pool flexible weight=%d\nrequire %s\ntaint flexible:NoSchedule", r.IntN(3),
		oneOf(r, "zone In a b c min=2", "zone Exists min=3", "capacity In spot on-demand min=2",
			"capacity Exists min=2",
			"tenancy Exists min=2", "family Exists min=2", "type Exists min=3",
			"arch In amd64 arm64 min=2")))
	for i := range 1 + r.IntN(3) {
		name := fmt.Sprintf("picky%d", i)
		s := fmt.Sprintf("pods %s n=%d cpu=%d mem=%d", name, 1+r.IntN(3), 100+r.IntN(20)*100, 128+r.IntN(10)*256)
		s += "\n" + oneOf(r, "tolerate all", "tolerate flexible:NoSchedule",
			"tolerate flexible:NoSchedule\nselect pool=flexible")
		for _, line := range []string{
			"select zone=" + oneOf(r, "a", "b"), "volume zone In " + oneOf(r, "a", "b c"),
			"spread zone skew=1 app=" + name,
			"select capacity=" + oneOf(r, "spot", "on-demand"), "prefer 5 capacity In spot", "prefer 3 zone In c",
			"spread capacity skew=1 soft app=" + name, "select family=c", "affinity tenancy In default",
			"near zone app=picky0",
			"prefer 5 host " + oneOf(r, "In", "NotIn") + " n0", "affinity host NotIn n0 n1",
			"affinity host DoesNotExist",
			"prefer 9 karpenter.sh/nodepool-hash In 17", "affinity karpenter.sh/nodepool-hash DoesNotExist",
			"prefer 2 karpenter.k8s.aws/ec2nodeclass In default", "prefer 4 karpenter.sh/initialized In true",
			"prefer 6 node.kubernetes.io/exclude-disruption DoesNotExist",
		} {
			if r.IntN(7) == 0 {
				s += "\n" + line
			}
		}
		out = append(out, s)
	}
	return out
}
