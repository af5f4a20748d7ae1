package overlays

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

// overlayTraits holds the traits by which overlays can tell pools apart.
type overlayTraits struct {
	keys  []string                   // of labels
	names []requirements.Requirement // on the pool's name
}

func newTraits(overlays []cluster.Overlay) overlayTraits {
	var t overlayTraits
	for _, o := range boundOverlays(overlays) {
		if o.Message != "" {
			continue
		}
		for _, r := range o.Requirements.All() {
			if r.Key == api.LabelNodePool {
				t.names = append(t.names, r)
			} else {
				t.keys = append(t.keys, r.Key)
			}
		}
	}
	slices.Sort(t.keys)
	t.keys = slices.Compact(t.keys)
	return t
}

// traitsOf is everything about a pool that matters to overlays; pools with the same are alike to them.
func (t overlayTraits) traitsOf(p cluster.Pool) string {
	id := p.ClassKey()
	for _, k := range t.keys {
		v, ok := p.Labels[k]
		id += fmt.Sprintf("|%t %q", ok, v)
	}
	for _, r := range t.names {
		id += fmt.Sprintf("|%t", r.Has(p.Name))
	}
	return id
}

// mostRequirements bounds the requirements of all overlays that are applied, each overlay counting as one more: each is
// tried on each type of each shelf, which takes about 0.1 ms.
const mostRequirements = 1_000

// boundOverlays are the overlays in the order in which they are applied. Those that come after as many as a pass may
// apply are invalid.
func boundOverlays(overlays []cluster.Overlay) []cluster.Overlay {
	sorted := slices.Clone(overlays)
	slices.SortFunc(sorted, func(x, y cluster.Overlay) int {
		return cmp.Or(cmp.Compare(y.Weight, x.Weight), strings.Compare(y.Name, x.Name))
	})
	work := 0
	for i := range sorted {
		o := &sorted[i]
		if o.Message != "" {
			continue
		}
		if work += 1 + len(o.Requirements.All()); work > mostRequirements {
			o.Message = fmt.Sprintf("NodeOverlays of more weight, or later by name, use up the %d requirements that all together may have: remove some, or say it with fewer",
				mostRequirements)
		}
	}
	return sorted
}
