package sim_test

import (
	"flag"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"joiner.sh/pkg/testing/objects"
	"joiner.sh/pkg/testing/shortrun"
	"joiner.sh/pkg/testing/sim"
)

// The flags of make sim. Without them a test run plays a few seeds; make test-all plays more.
var (
	seeds = shortrun.NewCount("seeds", 40, 8, "how many seeds to play")
	first = flag.Uint64("first", 1, "the first of them")

	ceilingSeeds = shortrun.NewCount("ceilings", 12, 4, "how many storms below a ceiling to play")

	progress = flag.Bool("progress", false, "say every few seconds how far it is, and at the end what it proved")
	story    = flag.Bool("story", false, "print the whole trace of the first seed")
	aim      = flag.String("aim", "", "a crash point, as it is told: seeds aim at it alone, as the worlds that are made for points that seeds missed")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // thousands of short-lived snapshots
	m.Run()
}

// TestSeeds plays seeds on all cores. Every violation names its seed; `make sim FIRST_SEED=s SEEDS=1` plays it again.
func TestSeeds(t *testing.T) {
	if named := func(p sim.CrashPoint) bool { return p.String() == *aim }; *aim != "" && !slices.ContainsFunc(crashPoints(), named) {
		t.Fatalf("no crash point is called %q", *aim)
	}
	if *story {
		fmt.Println(sim.RunScenario(t, sim.Scenario{Seed: *first, Catalog: objects.FewTypes(), Aims: aimed(*first), KeepAll: true}).Trace)
	}
	c := &campaign{t: t, began: time.Now(), calls: map[sim.CrashPoint]bool{}, hit: map[sim.CrashPoint]int{}, mutations: map[string]int{},
		broken: map[string]int{}, playing: map[uint64]bool{}}
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed, ok := c.next(); ok; seed, ok = c.next() {
				c.add(seed, "", sim.RunScenario(t, sim.Scenario{Seed: seed, Catalog: objects.FewTypes(), Aims: aimed(seed)}))
			}
		})
	}
	wg.Wait()
	if seeds.N() >= enough {
		c.hunt()
	}
	c.conclude()
}

const (
	enough = 1000 // seeds after which every crash point must have been hit
	tries  = 40   // worlds that are made for a point that none of those seeds hit
)

// hunt plays worlds for the points that no seed has hit, until they are.
func (c *campaign) hunt() {
	missed := c.missed()
	var wg sync.WaitGroup
	turn := make(chan sim.CrashPoint, len(missed))
	for _, p := range missed {
		turn <- p
	}
	close(turn)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for p := range turn {
				for k := range uint64(tries) {
					seed := *first + uint64(seeds.N()) + k
					r := sim.RunScenario(c.t, sim.Scenario{Seed: seed, Catalog: objects.FewTypes(), Aims: []sim.CrashPoint{p}})
					c.add(seed, p.String(), r)
					if slices.Contains(r.Hit, p) {
						break
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestSeedsThatFoundFaults plays worlds in which the product or a check was wrong once: a drift that was taken back for
// ever (1304) and one that asked for more new nodes than a pass may make (4298), what one command launches counted
// twice (1402), claims that could not be given up taken for gone (4674, 6832), notices that came between a decision and
// its deed (1890, 2280, 8163), an instance that had recovered (4), nodes protected after their disruption had begun
// (40078, 40196), checks that knew no better (10411, 10614, 10783, 10891, 20124, 20438, 20934, 21374, 1938, 3149, 3249,
// 6926, 7888, and of volumes 53, 235, 267), volumes that kept other pods of a spread out of its count (284), a
// replacement that a user had protected (20622), too few nodes for a spread (9416), a node that was waited for though
// it was overdue (6783), one whose pod could not be there any more (3780), and a replacement that could not attach the
// volumes of all pods of its node (1966). A change of what seeds draw makes other stories of them, so that each mended
// fault has a scenario or a test of its own beside it.
func TestSeedsThatFoundFaults(t *testing.T) {
	for _, seed := range []uint64{4, 53, 235, 267, 284, 1304, 1402, 1890, 2280, 4674, 6832, 8163, 4298, 6783, 6926, 7888, 1938, 1966, 3149, 3249, 9416, 3780, 10411, 10614, 10783, 10891, 20124, 20438, 20622, 20934, 21374, 40078, 40196} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			if r := sim.RunScenario(t, sim.Scenario{Seed: seed, Catalog: objects.FewTypes(), Aims: aims(seed)}); len(r.Violations) > 0 {
				t.Errorf("%s\n%s", r.Violations[0], r.Trace)
			}
		})
	}
}

// TestCeiling plays storms in clusters that are bounded as a whole, and bounded otherwise in the middle of the storm.
func TestCeiling(t *testing.T) {
	for seed := range uint64(ceilingSeeds.N()) {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			t.Parallel()
			s := sim.Scenario{Seed: seed + 1, Catalog: objects.FewTypes(), Aims: aimed(seed + 1), Ceiling: true}
			if r := sim.RunScenario(t, s); len(r.Violations) > 0 {
				t.Errorf("%s\n%s", r.Violations[0], r.Trace)
			}
		})
	}
}

func (c *campaign) missed() []sim.CrashPoint {
	return slices.DeleteFunc(crashPoints(), func(p sim.CrashPoint) bool { return c.hit[p] > 0 })
}

// campaign is many seeds together.
type campaign struct {
	t     *testing.T
	began time.Time

	mu        sync.Mutex
	given     int
	playing   map[uint64]bool
	done      int
	spoke     time.Time
	virtual   time.Duration
	lines     int
	calls     map[sim.CrashPoint]bool
	hit       map[sim.CrashPoint]int
	mutations map[string]int
	broken    map[string]int // by invariant
}

// maxTold is how many violations of one invariant are told with their story.
const maxTold = 3

func (c *campaign) next() (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given == seeds.N() {
		return 0, false
	}
	c.given++
	c.playing[*first+uint64(c.given-1)] = true
	return *first + uint64(c.given-1), true
}

func (c *campaign) add(seed uint64, aim string, r sim.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	delete(c.playing, seed)
	c.virtual += r.Virtual
	c.lines += r.Lines
	for _, p := range r.Calls {
		c.calls[p] = true
	}
	for _, p := range r.Hit {
		c.hit[p]++
	}
	for k, n := range r.Mutations {
		c.mutations[k] += n
	}
	for _, v := range r.Violations[:min(1, len(r.Violations))] {
		again := fmt.Sprintf("make sim SEEDS=1 FIRST_SEED=%d", seed)
		if aim != "" {
			again += fmt.Sprintf(" AIM='%s'", aim)
		}
		if c.broken[v.Invariant]++; c.broken[v.Invariant] <= maxTold {
			c.t.Errorf("seed %d, %s\n%s\nplay it again: %s", seed, v, r.Trace, again)
		} else {
			c.t.Errorf("seed %d, %s; %s", seed, v, again)
		}
	}
	if *progress && time.Since(c.spoke) > 5*time.Second {
		c.spoke = time.Now()
		fmt.Printf("%d of %d seeds and what is made for points that they miss, %s; now playing %v\n", c.done, seeds.N(), time.Since(c.began).Round(time.Second), slices.Sorted(maps.Keys(c.playing)))
	}
}

// conclude says what was proved, and fails when a call was made that was never hit although there were seeds enough.
func (c *campaign) conclude() {
	for _, name := range slices.Sorted(maps.Keys(c.broken)) {
		c.t.Errorf("%s: %d of %d seeds", name, c.broken[name], c.done)
	}
	points := crashPoints()
	for p := range c.calls {
		if !hasCall(points, p) {
			c.t.Errorf("%s calls %q, which crashPoints does not list", p.Function, p.Call)
		}
	}
	missed := c.missed()
	if seeds.N() >= enough && len(missed) > 0 {
		c.t.Errorf("%d crash points were not hit by %d seeds: %v", len(missed), c.done, missed)
	} else if len(missed) > 0 && *progress {
		fmt.Println("not hit by so few seeds:", missed)
	}
	if !*progress || c.t.Failed() {
		return
	}
	var deeds []string
	for _, k := range slices.Sorted(maps.Keys(c.mutations)) {
		deeds = append(deeds, fmt.Sprintf("%s %d", k, c.mutations[k]))
	}
	fmt.Printf("%d seeds, %s of virtual time in %s. No invariant was broken at any step or at rest; %d of %d crash points were hit.\n%s\n",
		c.done, c.virtual.Round(time.Hour), time.Since(c.began).Round(time.Second), len(crashPoints())-len(missed), len(crashPoints()),
		strings.Join(deeds, ", "))
}

// TestSameSeedSameStory plays seeds twice: every line is the same.
func TestSameSeedSameStory(t *testing.T) {
	for seed := uint64(1); seed <= uint64(shortrun.Of(6, 2)); seed++ {
		one := sim.RunScenario(t, sim.Scenario{Seed: seed, Catalog: objects.FewTypes(), Aims: aims(seed), KeepAll: true})
		two := sim.RunScenario(t, sim.Scenario{Seed: seed, Catalog: objects.FewTypes(), Aims: aims(seed), KeepAll: true})
		if one.Trace != two.Trace {
			a, b := strings.Split(one.Trace, "\n"), strings.Split(two.Trace, "\n")
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Fatalf("seed %d differs in line %d:\n%s\n%s", seed, i, a[i], b[i])
				}
			}
			t.Fatalf("seed %d has %d lines and then %d", seed, len(a), len(b))
		}
		other := sim.RunScenario(t, sim.Scenario{Seed: seed + 100, Catalog: objects.FewTypes()})
		if other.Sum == one.Sum {
			t.Errorf("seeds %d and %d have the same story", seed, seed+100)
		}
	}
}
