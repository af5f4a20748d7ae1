package binpack

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/manypods"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

// However a cluster changes from pass to pass, a cache of offerings answers every question as looking anew would.
func TestCachedOfferingsAnswerAlike(t *testing.T) {
	t.Parallel()
	asked, placed, kept := 0, 0, 0
	n := shortrun.Of(30, 4)
	for seed := range uint64(n) {
		w, err := scenario.Wild(seed)
		if err != nil {
			t.Fatal(err)
		}
		types := w.Market("")
		sells := func(string) []instancetypes.Type { return types }
		cache, s := &OfferingCache{}, w.Snapshot
		for step := range 6 {
			before := cache.stock
			whatIf := cache.WhatIf(s, sells)
			if whatIf == before {
				kept++
			}
			other := newWhatIf(s, sells)
			for part := range 2 {
				q := gone(s, part)
				want, got := PodsFrom(q, sells), whatIf.PlanPods(q)
				asked, placed = asked+1, placed+len(want.Existing)+len(want.Launches)
				if diff := cmp.Diff(want.Lines(), got.Lines()); diff != "" {
					t.Fatalf("seed %d, step %d, part %d (-anew +cached):\n%s", seed, step, part, diff)
				}
				if diff := cmp.Diff(other.PodPrices(q, nil), whatIf.PodPrices(q, nil)); diff != "" {
					t.Fatalf("seed %d, step %d: worth (-anew +cached):\n%s", seed, step, diff)
				}
			}
			s = later(s, int(seed)+step)
		}
	}
	if asked < 10*n || placed < 50*n || kept < n {
		t.Errorf("%d questions, %d pods and nodes placed, %d stocks kept: too little to test anything", asked, placed, kept)
	}
}

// later is the snapshot some time after, when something of one sort has changed.
func later(s cluster.Snapshot, sort int) cluster.Snapshot {
	s.Now = s.Now.Add(time.Minute)
	s.Pods, s.Pools = slices.Clone(s.Pods), slices.Clone(s.Pools)
	switch sort % 6 {
	case 0:
		s.Pods = s.Pods[:len(s.Pods)*3/4]
	case 1:
		for i := range min(4, len(s.Pods)) {
			p := s.Pods[i]
			p.Name, p.NodeName, p.Unscheduled = fmt.Sprintf("more-%d-%d", sort, i), "", true
			p.NodeSelector = map[string]string{"example.com/team": fmt.Sprint(sort)}
			s.Pods = append(s.Pods, p)
		}
	case 2:
		if len(s.Pools) > 0 {
			s.Pools[0].Ready = !s.Pools[0].Ready
		}
	case 3:
		for i := range s.Pods {
			s.Pods[i].Need.CPU += 100
		}
	case 4:
		if len(s.Pools) > 0 {
			s.Pools[0].Weight += 7
		}
	}
	return s
}

// What a cache of offerings says is sold is what would be found anew, while marks come and end, reservations end and
// prices change.
func TestCachedOfferingsAreWhatIsSold(t *testing.T) {
	s := manypods.Services(t, 0)
	s.Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	cache := &OfferingCache{}
	var last []instancetypes.Type
	kept := 0
	check := func(what string, same bool) {
		t.Helper()
		got := cache.Offerings(s)(s.Classes[0].Name)
		if diff := cmp.Diff(resolveClass(s, s.Classes[0]), got); diff != "" {
			t.Fatalf("%s (-anew +cached):\n%.2000s", what, diff)
		}
		if is := len(last) > 0 && &last[0] == &got[0]; is != same {
			t.Errorf("%s: kept %t, want %t", what, is, same)
		} else if is {
			kept++
		}
		last = got
	}
	check("at first", false)
	s.Now = s.Now.Add(time.Hour)
	check("an hour later", true)
	s.Unavailable = []instancetypes.UnavailableOffering{{OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.Spot, Type: "m5.large"}, Until: s.Now.Add(time.Minute), Why: "no capacity"}}
	check("m5.large is unavailable", false)
	s.Now = s.Now.Add(59 * time.Second)
	check("still", true)
	s.Now = s.Now.Add(time.Second)
	check("no more", false)
	s.Classes = slices.Clone(s.Classes)
	s.Classes[0].Reservations = []instancetypes.Reservation{{ID: "cr-1", Type: "m5.large", Zone: "us-west-2a", Kind: instancetypes.CapacityBlock, Remaining: 1, Ends: s.Now.Add(time.Hour)}}
	check("a capacity block", false)
	s.Now = s.Now.Add(20 * time.Minute)
	check("about to end", false)
	s.Now = s.Now.Add(-30 * time.Minute)
	check("the clock was set back", false)
	s.Catalog.Types = slices.Clone(s.Catalog.Types)
	s.Catalog.Types[0].OnDemandUSD += 1
	check("another price", false)
	if kept != 2 {
		t.Errorf("kept %d times, want 2", kept)
	}
}

// What a cache of offerings has is not used for a market with another price or with nothing, nor for pods that ask for
// something new.
func TestCachedOfferingsFollowPricesAndResources(t *testing.T) {
	s := manypods.Identical(t, 3)
	all := instancetypes.ResolveTypes(s.Catalog, s.Classes[0], nil, s.Now)
	i := slices.IndexFunc(all, func(x instancetypes.Type) bool { return x.Name == "m5.large" })
	if i < 0 {
		t.Fatal("the catalog has no m5.large")
	}
	dearer := all[i]
	dearer.Offerings = slices.Clone(dearer.Offerings)
	for o := range dearer.Offerings {
		dearer.Offerings[o].Price *= 2
	}
	withGPU := s
	withGPU.Pods = slices.Clone(s.Pods)
	withGPU.Pods[2].Need.Extended = []resources.Extended{{Name: "nvidia.com/gpu", Count: 1}}
	cache := &OfferingCache{}
	now, later := []instancetypes.Type{all[i]}, []instancetypes.Type{dearer}
	for _, c := range []struct {
		what  string
		s     cluster.Snapshot
		types []instancetypes.Type
	}{{"at first", s, now}, {"at another price", s, later}, {"when nothing is sold", s, nil}, {"with a pod that asks for a GPU", withGPU, later}} {
		sells := func(string) []instancetypes.Type { return c.types }
		want, got := PodsFrom(c.s, sells), cache.WhatIf(c.s, sells).PlanPods(c.s)
		if diff := cmp.Diff(want.Lines(), got.Lines()); diff != "" || (len(want.Launches) == 0) != (c.types == nil) {
			t.Errorf("%s (-anew +cached):\n%s", c.what, diff)
		}
	}
}

// What one reserved offering has left is found anew in each pass: a claim on its way takes it.
func TestADepotNoticesThatAReservationIsTaken(t *testing.T) {
	world := []string{"type r.large cpu=2000 mem=4096 milliusd=99 reserved=(cr-1,a,1)\nlabel karpenter.k8s.aws/capacity-reservation-id cr-1",
		"pool booked weight=1\nrequire capacity In reserved\nrequire karpenter.k8s.aws/capacity-reservation-id In cr-1",
		"pool default\nrequire capacity In on-demand", "pods web n=2 cpu=1100 mem=100"}
	read := func(more ...string) *scenario.World {
		w, err := scenario.FromText(append(slices.Clone(world), more...))
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	free, taken := read(), read("claim asked pool=booked types=(r.large) zones=(a) cpu=1900 mem=1024 pods=1")
	types := free.Market("")
	sells := func(string) []instancetypes.Type { return types }
	cache := &OfferingCache{}
	first := cache.WhatIf(free.Snapshot, sells)
	before := first.PodPrices(free.Snapshot, nil)
	again := cache.WhatIf(taken.Snapshot, sells)
	got, want := again.PodPrices(taken.Snapshot, nil), newWhatIf(taken.Snapshot, sells).PodPrices(taken.Snapshot, nil)
	if diff := cmp.Diff(want, got); diff != "" || again != first || cmp.Equal(want, before) {
		t.Errorf("pods were worth %v before, the same depot says %t (-anew +depot):\n%s", before, again == first, diff)
	}
}
