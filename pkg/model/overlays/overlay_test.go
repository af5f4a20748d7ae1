package overlays_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/syntax"
)

// TestScenarios plays testdata in the words of pkg/testing/scenario. "show" prints what became of the overlays and what
// each pool sells under them, types that no overlay touched left out.
func TestScenarios(t *testing.T) {
	words := syntax.NewGrammar(scenario.Words(), "show")
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := scenario.New()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := words.Check(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			if d.Cmd == "show" {
				out := show(w.Snapshot, w.Market)
				backwards := w.Snapshot
				backwards.Overlays, backwards.Pools = slices.Clone(backwards.Overlays), slices.Clone(backwards.Pools)
				slices.Reverse(backwards.Overlays)
				if again := show(backwards, w.Market); again != out {
					t.Errorf("%s: in another order it is\n%s", d.Pos, again)
				}
				return out
			}
			known, err := w.Do(d)
			if err != nil || !known {
				d.Fatalf(t, "%s: %v", d.Cmd, err)
			}
			return "ok\n"
		})
	})
}

func show(s cluster.Snapshot, types func(string) []instancetypes.Type) string {
	var b strings.Builder
	for _, v := range overlays.JudgeOverlays(s.Overlays, overlays.OfferingsByPool(s, types)) {
		switch {
		case v.InForce():
			fmt.Fprintf(&b, "%s is in force\n", v.Overlay)
		case v.Invalid != "":
			fmt.Fprintf(&b, "%s is invalid: %s\n", v.Overlay, v.Invalid)
		default:
			fmt.Fprintf(&b, "%s is in conflict: %s\n", v.Overlay, v.Conflict)
		}
	}
	market := overlays.ByPool(s, types)
	for _, p := range s.Pools {
		for _, x := range market(p) {
			if !x.PriceOverlaid && !x.CapacityOverlaid {
				continue
			}
			fmt.Fprintf(&b, "%s %s", p.Name, x.Name)
			if x.CapacityOverlaid {
				fmt.Fprintf(&b, " with %s, for pods %s", x.Capacity, x.Allocatable)
			}
			b.WriteByte('\n')
			for _, o := range x.Offerings {
				if x.PriceOverlaid {
					fmt.Fprintf(&b, "  %s %s %.4g\n", o.CapacityType, o.Zone, o.Price)
				}
			}
		}
	}
	return b.String()
}

// facts is a market of one type: on-demand at a known price, spot at a price that nobody knows.
func facts(t *testing.T, unavailable ...instancetypes.UnavailableOffering) []instancetypes.Type {
	t.Helper()
	c := instancetypes.Catalog{Region: "r", Zones: map[string]string{"a": "r-1", "b": "r-2"}, Types: []instancetypes.Facts{{
		Name: "m5.large", Arch: []string{"amd64"}, VCPU: 2, MemoryMiB: 8192, DefaultCardENIs: 3, IPv4PerENI: 10, Hypervisor: "nitro",
		Virtualization: []string{"hvm"}, UsageClasses: []string{"on-demand", "spot"}, Zones: []string{"a"}, OnDemandUSD: 0.1}}}
	return instancetypes.ResolveTypes(c, instancetypes.DefaultClass(c), unavailable, cluster.Snapshot{}.Now)
}

// A price that an overlay gives stands in for one that nobody knows; what is not for sale stays so.
func TestUnknownPrice(t *testing.T) {
	half := 0.5
	change := cluster.Overlay{Name: "x", Change: &cluster.PriceChange{USD: 1}}
	price := cluster.Overlay{Name: "x", Price: &half}
	sold := instancetypes.UnavailableOffering{OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.Spot}, Until: cluster.Snapshot{}.Now.AddDate(1, 0, 0), Why: "ICE"}
	for _, c := range []struct {
		name    string
		types   []instancetypes.Type
		overlay cluster.Overlay
		want    string
	}{
		{"price", facts(t), price, "on-demand a 0.5, spot a 0.5, on-demand b 0.5 not sold in b, spot b 0.5 not sold in b"},
		{"change", facts(t), change, "on-demand a 1.1, on-demand b 1.1 not sold in b, spot a 0 spot price unknown, spot b 1 not sold in b"},
		{"unavailable", facts(t, sold), price,
			"on-demand a 0.5, spot a 0.5 unavailable until 0002-01-01T00:00:00Z (ICE), on-demand b 0.5 not sold in b, spot b 0.5 not sold in b"},
	} {
		before := fmt.Sprint(c.types)
		var got []string
		for _, o := range overlays.ApplyOverlays(c.types, cluster.Pool{Name: "p"}, []cluster.Overlay{c.overlay})[0].Offerings {
			if o.Available != (o.Why == "") {
				t.Errorf("%s: %s is available: %t, but %q", c.name, o.OfferingKey, o.Available, o.Why)
			}
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %g %s", o.CapacityType, o.Zone, o.Price, o.Why)))
		}
		slices.Sort(got)
		want := strings.Split(c.want, ", ")
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		if fmt.Sprint(c.types) != before {
			t.Errorf("%s: the types given were changed", c.name)
		}
	}
}

// An overlay can be about one reservation.
func TestReservation(t *testing.T) {
	c := instancetypes.Catalog{Region: "r", Zones: map[string]string{"a": "r-1"}, Types: []instancetypes.Facts{{Name: "m5.large", Arch: []string{"amd64"},
		VCPU: 2, MemoryMiB: 8192, Virtualization: []string{"hvm"}, UsageClasses: []string{"on-demand"}, Zones: []string{"a"}, OnDemandUSD: 1}}}
	class := instancetypes.DefaultClass(c)
	for _, id := range []string{"cr-1", "cr-2"} {
		class.Reservations = append(class.Reservations, instancetypes.Reservation{ID: id, Type: "m5.large", Zone: "a", Kind: "default", Remaining: 1})
	}
	half := 0.5
	o := cluster.Overlay{Name: "x", Price: &half, Requirements: requirements.NewSet(requirements.Of(instancetypes.LabelReservationID, "cr-2"))}
	got := map[string]float64{}
	for _, f := range overlays.ApplyOverlays(instancetypes.ResolveTypes(c, class, nil, cluster.Snapshot{}.Now), cluster.Pool{}, []cluster.Overlay{o})[0].Offerings {
		id := ""
		if f.Reservation != nil {
			id = f.Reservation.ID
		}
		got[id] = f.Price
	}
	if d := cmp.Diff(map[string]float64{"": 1, "cr-1": 1e-7, "cr-2": 0.5}, got); d != "" {
		t.Errorf("prices by reservation (-want +got):\n%s", d)
	}
}

// Huge pages come out of the memory that pods may use, and not twice.
func TestHugePages(t *testing.T) {
	x := instancetypes.Type{Name: "t", Offerings: []instancetypes.Offering{{}}, Allocatable: resources.List{Memory: 1000}.With("hugepages-2Mi", 100)}
	for n, want := range map[int64]int64{100: 1000, 300: 800, 5000: 0} {
		o := cluster.Overlay{Name: "x", Capacity: []resources.Extended{{Name: "hugepages-2Mi", Count: n}}}
		got := overlays.ApplyOverlays([]instancetypes.Type{x}, cluster.Pool{}, []cluster.Overlay{o})[0].Allocatable
		if got.Memory != want || got.Get("hugepages-2Mi") != n {
			t.Errorf("%d: %s, want %d of memory", n, got, want)
		}
	}
}

// BenchmarkManyOverlays are overlays of as many requirements as all together may have, which hold for every type.
func BenchmarkManyOverlays(b *testing.B) {
	w := scenario.New()
	for i := range 1200 {
		w.Types = append(w.Types, instancetypes.Type{Name: fmt.Sprint("t", i), Offerings: make([]instancetypes.Offering, 8)})
	}
	for i := range 10 {
		w.Snapshot.Pools = append(w.Snapshot.Pools, cluster.Pool{Name: fmt.Sprint("p", i), Class: "default", Labels: map[string]string{fmt.Sprint("l", i): "x"}})
	}
	for i := range 10 {
		o := cluster.Overlay{Name: fmt.Sprint("o", i), Weight: int32(i), Change: &cluster.PriceChange{Percent: 1}}
		o.Requirements = requirements.NewSet(requirements.None(fmt.Sprint("l", i)))
		for k := range 98 {
			r, _ := requirements.NewRequirement(fmt.Sprint("key-", k), requirements.NotIn, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
			o.Requirements = o.Requirements.And(r)
		}
		w.Snapshot.Overlays = append(w.Snapshot.Overlays, o)
	}
	for b.Loop() {
		market := overlays.ByPool(w.Snapshot, w.Market)
		for _, p := range w.Snapshot.Pools {
			market(p)
		}
	}
}

func BenchmarkMarket(b *testing.B) {
	w := scenario.New()
	for i := range 1200 {
		w.Types = append(w.Types, instancetypes.Type{Name: fmt.Sprint("t", i), Offerings: make([]instancetypes.Offering, 8)})
	}
	for i := range 10 {
		w.Snapshot.Pools = append(w.Snapshot.Pools, cluster.Pool{Name: fmt.Sprint("p", i), Class: "default"})
		w.Snapshot.Overlays = append(w.Snapshot.Overlays, cluster.Overlay{Name: fmt.Sprint("o", i), Weight: int32(i), Change: &cluster.PriceChange{Percent: 1}})
	}
	b.ReportAllocs()
	for b.Loop() {
		market := overlays.ByPool(w.Snapshot, w.Market)
		for _, p := range w.Snapshot.Pools {
			if !market(p)[0].PriceOverlaid {
				b.Fatal("not overlaid")
			}
		}
	}
}

// Overlays are applied up to 1,000 requirements in all, the heaviest first; the others say why they are not, and tell
// no pools apart.
func TestOverlaysShareTheWork(t *testing.T) {
	s, half := scenario.New().Snapshot, 0.5
	for i := range 30 {
		o := cluster.Overlay{Name: fmt.Sprintf("o%02d", i), Weight: int32(i), Price: &half}
		for k := range 49 {
			o.Requirements = o.Requirements.And(requirements.None(fmt.Sprintf("key-%d-%d", i, k)))
		}
		s.Overlays = append(s.Overlays, o)
		s.Pools = append(s.Pools, cluster.Pool{Name: fmt.Sprintf("p%02d", i), Class: "default", Labels: map[string]string{fmt.Sprintf("key-%d-1", i): "x"}})
	}
	types := facts(t)
	shelves := overlays.OfferingsByPool(s, func(string) []instancetypes.Type { return types })
	inForce := 0
	for _, v := range overlays.JudgeOverlays(s.Overlays, shelves) {
		if v.InForce() {
			inForce++
		} else if v.Overlay > "o09" || v.Invalid != "NodeOverlays of more weight, or later by name, use up the 1000 requirements that all together may have: remove some, or say it with fewer" {
			t.Errorf("%s: %q %q", v.Overlay, v.Invalid, v.Conflict)
		}
	}
	if inForce != 20 || len(shelves) != 21 {
		t.Errorf("%d overlays are in force, want 20; %d shelves, want 21", inForce, len(shelves))
	}
}

func TestMark(t *testing.T) {
	for _, c := range []struct {
		t    instancetypes.Type
		want map[string]string
	}{
		{instancetypes.Type{}, map[string]string{}},
		{instancetypes.Type{PriceOverlaid: true}, map[string]string{"karpenter.sh/price-overlay-applied": "true"}},
		{instancetypes.Type{CapacityOverlaid: true}, map[string]string{"karpenter.sh/capacity-overlay-applied": "true"}},
	} {
		got := map[string]string{}
		overlays.AnnotateClaim(got, c.t)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%+v (-want +got):\n%s", c.t, d)
		}
	}
}

// A pool that has changed its class since, or is being deleted, gets the types of the class that is asked for.
func TestMarketOfAnotherClass(t *testing.T) {
	half := 0.5
	s := cluster.Snapshot{Overlays: []cluster.Overlay{{Name: "x", Price: &half}},
		Pools: []cluster.Pool{{Name: "p", Class: "now"}, {Name: "q", Class: "now", Deleting: true}}}
	asked := map[string]int{}
	market := overlays.ByPool(s, func(class string) []instancetypes.Type {
		asked[class]++
		return []instancetypes.Type{{Name: "of-" + class, Offerings: []instancetypes.Offering{{Price: 1, Available: true}}}}
	})
	for _, c := range []struct {
		pool cluster.Pool
		want string
	}{
		{s.Pools[0], "of-now 0.5"}, {cluster.Pool{Name: "p", Class: "before"}, "of-before 1"}, {s.Pools[1], "of-now 1"}, {cluster.Pool{Name: "z", Class: "now"}, "of-now 1"},
		{s.Pools[0], "of-now 0.5"},
	} {
		x := market(c.pool)[0]
		if got := fmt.Sprint(x.Name, " ", x.Offerings[0].Price); got != c.want {
			t.Errorf("pool %s with class %s: %s, want %s", c.pool.Name, c.pool.Class, got, c.want)
		}
	}
	if d := cmp.Diff(map[string]int{"now": 1, "before": 1}, asked); d != "" {
		t.Errorf("asked (-want +got):\n%s", d)
	}
}

// Pools that no overlay tells apart share their types; one that is named or labelled does not.
func TestManyPoolsShareShelves(t *testing.T) {
	s := scenario.New().Snapshot
	half := 0.5
	s.Overlays = []cluster.Overlay{
		{Name: "one", Weight: 1, Requirements: requirements.NewSet(requirements.Of("karpenter.sh/nodepool", "pool-0007")), Price: &half},
		{Name: "red", Weight: 2, Requirements: requirements.NewSet(requirements.Of("team", "red")), Price: &half},
	}
	for i := range 1000 {
		p := cluster.Pool{Name: fmt.Sprintf("pool-%04d", i), Class: "default", Labels: map[string]string{"odd": fmt.Sprint(i)}}
		if i == 9 {
			p.Labels["team"] = "red"
		}
		s.Pools = append(s.Pools, p)
	}
	types := facts(t)
	sells := func(string) []instancetypes.Type { return types }
	if got := len(overlays.OfferingsByPool(s, sells)); got != 3 {
		t.Errorf("%d shelves, want 3", got)
	}
	market := overlays.ByPool(s, sells)
	for i, want := range map[int]bool{0: false, 7: true, 9: true, 999: false} {
		if got := market(s.Pools[i])[0].PriceOverlaid; got != want {
			t.Errorf("%s: overlaid %t, want %t", s.Pools[i].Name, got, want)
		}
	}
}
