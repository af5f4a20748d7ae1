package instancetypes_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
)

// Nodes of a class with a placement group say which; only types that may be in one of its strategy are to be had; and
// what was refused in it, of a zone or of an offering, is refused in it alone.
func TestPlacementGroup(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	resolve := func(p *instancetypes.Placement, unavailable ...instancetypes.UnavailableOffering) instancetypes.Type {
		c := small(func(f *instancetypes.Facts) { f.PlacementStrategies = []string{"cluster", "partition"} })
		class := instancetypes.DefaultClass(c)
		class.Placement = p
		return instancetypes.ResolveTypes(c, class, unavailable, now)[0]
	}
	x := resolve(&instancetypes.Placement{ID: "pg-1", Strategy: "partition", Partitions: 11})
	for key, want := range map[string][]string{instancetypes.LabelPlacement: {"pg-1"}, instancetypes.LabelPartition: {"1", "10", "11", "2", "3", "4", "5", "6", "7", "8", "9"}} {
		if r, _ := x.Requirements.Get(key); !cmp.Equal(r.Values, want) || r.Not {
			t.Errorf("%s: %v, want %v", key, r, want)
		}
	}
	for _, p := range []*instancetypes.Placement{nil, {ID: "pg-1", Strategy: "cluster"}} {
		if r, _ := resolve(p).Requirements.Get(instancetypes.LabelPartition); !r.AllowsAbsent() {
			t.Errorf("%v has partitions: %v", p, r)
		}
	}
	sold := func(t instancetypes.Type) (n int) {
		for _, o := range t.Offerings {
			if o.Available {
				n++
			}
		}
		return n
	}
	all := sold(resolve(nil))
	ours, other := &instancetypes.Placement{ID: "pg-1", Strategy: "cluster"}, &instancetypes.Placement{ID: "pg-2", Strategy: "cluster"}
	zone := instancetypes.UnavailableOffering{OfferingKey: instancetypes.OfferingKey{CapacityType: "on-demand", Zone: "a"}, Scope: "pg-1", Until: now.Add(time.Minute), Why: "full"}
	offering := instancetypes.UnavailableOffering{OfferingKey: instancetypes.OfferingKey{CapacityType: "on-demand", Type: "m5.large", Zone: "a"}, Scope: "pg-1", Until: now.Add(time.Minute), Why: "full"}
	for _, u := range []instancetypes.UnavailableOffering{zone, offering} {
		for name, c := range map[string]struct {
			p    *instancetypes.Placement
			want int
		}{"none": {nil, all}, "ours": {ours, all - 1}, "another": {other, all}, "of a strategy that the type does not know": {&instancetypes.Placement{ID: "pg-3", Strategy: "spread"}, 0}} {
			if got := sold(resolve(c.p, u)); got != c.want {
				t.Errorf("group %s: %d offerings are to be had, want %d", name, got, c.want)
			}
		}
	}
}
