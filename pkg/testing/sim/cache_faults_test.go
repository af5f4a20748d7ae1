package sim_test

import (
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"joiner.sh/pkg/testing/objects"
	"joiner.sh/pkg/testing/sim"
)

var (
	faultSeeds = flag.Int("fault-seeds", 0, "play so many seeds with each fault of the cache, and tell who sees it")
	faultFor   = flag.Duration("fault-for", time.Minute, "for so long at most, each")
	onlyFault  = flag.String("fault", "", "this one alone")
)

// sighting is who saw a fault of the cache.
type sighting struct {
	mu     sync.Mutex
	played int
	seeds  []uint64
	by     map[string]int
}

// TestCacheFaultsAreSeen counts by how many seeds each fault of the cache is seen, and as what.
func TestCacheFaultsAreSeen(t *testing.T) {
	if *faultSeeds == 0 {
		t.Skip("-fault-seeds is not given")
	}
	for _, fault := range append(sim.CacheFaults(), "none") {
		if *onlyFault == "" && fault == "none" || *onlyFault != "" && *onlyFault != string(fault) {
			continue
		}
		s := playFault(t, fault)
		if fault == "none" {
			fault = "sound caches"
		}
		fmt.Printf("%s: %d of %d seeds, first ones %v, as %v\n", fault, len(s.seeds), s.played, s.seeds[:min(5, len(s.seeds))], s.by)
		if len(s.seeds) == 0 {
			t.Errorf("%s: none of %d seeds sees it", fault, s.played)
		}
	}
}

func playFault(t *testing.T, fault sim.CacheFault) *sighting {
	s, end := &sighting{by: map[string]int{}}, time.Now().Add(*faultFor)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for time.Now().Before(end) {
				s.mu.Lock()
				seed := *first + uint64(s.played)
				more := s.played < *faultSeeds
				if more {
					s.played++
				}
				s.mu.Unlock()
				if !more {
					return
				}
				r := sim.RunScenario(t, sim.Scenario{Seed: seed, Catalog: objects.FewTypes(), Aims: aimed(seed), CacheFault: fault})
				s.mu.Lock()
				if len(r.Violations) > 0 {
					s.seeds = append(s.seeds, seed)
					s.by[r.Violations[0].Invariant]++
				}
				s.mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(s.seeds)
	return s
}

// Each fault of the cache is seen by some seed: by one that saw it once or, since a change of what seeds draw makes
// other stories of them, by one of those that follow.
func TestEachCacheFaultIsSeen(t *testing.T) {
	const most = 40
	for _, fault := range slices.Sorted(maps.Keys(seenBy())) {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			for seed := seenBy()[fault]; seed < seenBy()[fault]+most; seed++ {
				r := sim.RunScenario(t, sim.Scenario{Seed: seed, Catalog: objects.FewTypes(), Aims: aimed(seed), CacheFault: fault})
				if len(r.Violations) > 0 {
					return
				}
			}
			t.Errorf("none of %d seeds sees it", most)
		})
	}
}

// seenBy has a seed that saw the fault.
func seenBy() map[sim.CacheFault]uint64 {
	return map[sim.CacheFault]uint64{sim.EventLost: 2, sim.DeleteLost: 2, sim.GoneIsSilence: 2, sim.OwnWritesIgnored: 3, sim.ProofSkipped: 3, sim.FreezeUnnoticed: 4, sim.RestoredAsNow: 31}
}
