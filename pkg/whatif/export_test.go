package whatif

import (
	"slices"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/binpack"
)

// WithoutProtection is the cluster without the guards that the protection is about.
func WithoutProtection(s cluster.Snapshot, m disruption.Memory, sells binpack.Offerings, p Protection) cluster.Snapshot {
	return withoutGuards(s, slices.DeleteFunc(newLedger(s, m, sells, Limits{}).listGuards(nil),
		func(g guard) bool { return g.name != p.Guard && !slices.Contains(p.Together, g.name) }))
}
