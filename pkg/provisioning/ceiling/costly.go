package ceiling

import (
	"cmp"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
)

// muchUSD is the price of new nodes of one namespace, in USD per hour, from which somebody is told.
const muchUSD = 10

// CostlyNamespace is a namespace for whose pods nodes are launched that cost more than all that run.
type CostlyNamespace struct {
	Namespace string   // its name
	Nodes     int      // that any of its pods are for
	USD       float64  // per hour, of nodes for pods of several namespaces its part of the pods
	Running   float64  // per hour, of all nodes that Joiner runs
	Pools     []string // NodePools of the nodes, sorted
}

// FindCostly lists the namespaces that make Joiner buy as much anew as all else costs, and 10 USD an hour at least, by
// name. Nothing is refused for it: it is a word to whoever set no limit.
func FindCostly(s cluster.Snapshot, p plan.Plan) (out []CostlyNamespace) {
	running := 0.0
	for _, c := range s.Claims {
		if offering := instancetypes.OfferingKeyOf(c.Labels); offering.Type != "" && c.Deleting.IsZero() {
			usd, _ := s.Catalog.Charge(offering)
			running += usd
		}
	}
	at := map[string]int{}
	for _, l := range p.AllLaunches() {
		seen := map[string]bool{}
		for _, pod := range l.Pods {
			ns, _, _ := strings.Cut(pod, "/")
			i, known := at[ns]
			if !known {
				i, at[ns] = len(out), len(out)
				out = append(out, CostlyNamespace{Namespace: ns, Running: running})
			}
			out[i].USD += l.Choice.Price / float64(len(l.Pods))
			if !seen[ns] {
				seen[ns], out[i].Nodes, out[i].Pools = true, out[i].Nodes+1, append(out[i].Pools, l.Pool)
			}
		}
	}
	out = slices.DeleteFunc(out, func(c CostlyNamespace) bool { return c.USD < max(muchUSD, c.Running) })
	for i := range out {
		slices.Sort(out[i].Pools)
		out[i].Pools = slices.Compact(out[i].Pools)
	}
	slices.SortFunc(out, func(a, b CostlyNamespace) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return out
}
