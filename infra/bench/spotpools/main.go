// Command spotpools plays clusters of spot nodes through days of a market whose pools are interrupted more or less
// often, and prints what it costs to choose by price, to leave the choice to EC2, to learn, and to know.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/spotpools"
)

// startTime is when each run begins.
func startTime() time.Time { return time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC) }

func main() {
	days := flag.Int("days", 60, "days of each run")
	seeds := flag.Int("seeds", 20, "runs of each market")
	first := flag.Int("first-seed", 0, "seed of the first run of each market")
	only := flag.String("market", "", "name of the only market to play")
	usd := flag.Float64("podInterruptionCostUSD", 0.012, "USD for each pod that an interruption moves")
	out := flag.String("o", "", "file to write; empty for the standard output")
	flag.Parse()
	if err := runScenarios(seedRange{*first, *seeds}, *days, *usd, *only, *out); err != nil {
		log.Fatalf("spotpools: %v", err)
	}
}

// seedRange is the seeds of the runs.
type seedRange struct{ first, count int }

func runScenarios(seeds seedRange, days int, podUSD float64, only, path string) error {
	if days < 1 || seeds.count < 1 || seeds.first < 0 || !(podUSD > 0) {
		return errors.New("days, seeds and podInterruptionCostUSD must be more than 0, first-seed not less")
	}
	var all []result
	for _, s := range marketScenarios() {
		if only != "" && s.name != only {
			continue
		}
		r, err := playScenario(s, days, seeds, podUSD)
		if err != nil {
			return err
		}
		all = append(all, r...)
	}
	if path == "" {
		return writeTable(os.Stdout, all, days, seeds, podUSD)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(writeTable(f, all, days, seeds, podUSD), f.Close())
}

// result is what one way of choosing came to in one market, over all seeds.
type result struct {
	scenario
	way           string
	hours         float64
	interruptions float64
	expected      float64 // interruptions by the true hazards of the nodes, without the luck of the draw
	usd           float64
	rates         []float64 // of each seed
}

// interruptionRate is the expected interruptions in 1,000 node hours.
func (r result) interruptionRate() float64 { return 1000 * r.expected / r.hours }
func (r result) hourlyPrice() float64      { return r.usd / r.hours }

// policyNames are the four ways of choosing, in the order of the table.
func policyNames() []string { return []string{byPrice, byEC2, learned, oracle} }

// Ways of choosing.
const (
	byPrice = "price only"
	byEC2   = "price-capacity-optimized"
	learned = "learned"
	oracle  = "oracle"
)

func playScenario(s scenario, days int, seeds seedRange, podUSD float64) ([]result, error) {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		return nil, err
	}
	types, err := typesFor(c, zoneNames())
	if err != nil {
		return nil, err
	}
	runs := make([]result, seeds.count*len(policyNames()))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range seeds.count {
		for k, way := range policyNames() {
			g.Go(func() (err error) {
				at := &runs[i*len(policyNames())+k]
				*at, err = trial{s, way, days, uint64(seeds.first + i), podUSD}.playRun(types)
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out := make([]result, len(policyNames()))
	for i, r := range runs {
		sum := &out[i%len(policyNames())]
		sum.scenario, sum.way = s, r.way
		sum.hours, sum.interruptions, sum.usd = sum.hours+r.hours, sum.interruptions+r.interruptions, sum.usd+r.usd
		sum.expected, sum.rates = sum.expected+r.expected, append(sum.rates, r.interruptionRate())
	}
	return out, nil
}

// node is a node of the cluster.
type node struct {
	*pool
	name string
}

// trial is what one run is made of.
type trial struct {
	scenario
	way    string
	days   int
	seed   uint64
	podUSD float64 // of each pod that an interruption moves
}

// playRun plays one run. The market of a seed is the same for each way.
func (u trial) playRun(types []instancetypes.Type) (result, error) {
	own := slices.Clone(types)
	for i := range own {
		own[i].Offerings = slices.Clone(own[i].Offerings)
	}
	m, luck := newMarket(u.scenario, u.seed, own), rand.New(rand.NewPCG(u.seed, 7))
	out, l := result{scenario: u.scenario, way: u.way}, &learner{podUSD: u.podUSD}
	l.record.Version = spotpools.Version
	var p policy = requested{}
	if u.way == byPrice {
		p = lowestPrice{}
	}
	b := buyer{market: m, policy: p, learner: l, way: u.way}
	var nodes []node
	for hour := range u.days * 24 {
		now := startTime().Add(time.Duration(hour) * time.Hour)
		nodes = trimNodes(nodes, wantedNodes(u.nodes, hour), luck)
		if err := b.fillNodes(&nodes, wantedNodes(u.nodes, hour), now); err != nil {
			return out, err
		}
		running, events, left := map[spotpools.Pool]float64{}, []spotpools.Event(nil), nodes[:0]
		for _, n := range nodes {
			running[n.Pool]++
			chance := 1 - math.Exp(-n.hazard)
			out.hours, out.usd, out.expected = out.hours+1, out.usd+n.price, out.expected+chance
			if luck.Float64() < chance {
				out.interruptions++
				events = append(events, spotpools.Event{ID: n.name, Kind: spotpools.Interruption, Pool: n.Pool})
				continue
			}
			left = append(left, n)
		}
		nodes = left
		l.learnHour(now.Add(time.Hour), running, events)
		m.advanceHour()
	}
	return out, nil
}

// wantedNodes is how many nodes there are to be: fewer at night.
func wantedNodes(mean, hour int) int {
	return max(1, int(math.Round(float64(mean)*(1+0.4*math.Sin(2*math.Pi*float64(hour%24)/24)))))
}

// trimNodes ends nodes that are too many, and one in 48 others, which work that moves leaves.
func trimNodes(nodes []node, want int, luck *rand.Rand) []node {
	const stays = 48
	nodes = slices.DeleteFunc(nodes, func(node) bool { return luck.IntN(stays) == 0 })
	for len(nodes) > want {
		i := luck.IntN(len(nodes))
		nodes = slices.Delete(nodes, i, i+1)
	}
	return nodes
}

// buyer launches nodes in a market in one way.
type buyer struct {
	market  *market
	policy  policy
	learner *learner
	way     string
}

// fillNodes launches what is missing.
func (b buyer) fillNodes(nodes *[]node, want int, now time.Time) error {
	if len(*nodes) >= want {
		return nil
	}
	types := b.market.typesOnSale()
	switch b.way {
	case learned:
		types = b.learner.priceTypes(types, now)
	case oracle:
		types = b.learner.priceByHazard(b.market, types)
	}
	in := inputFor(types)
	room := map[*pool]int{}
	for _, n := range *nodes {
		room[n.pool]++
	}
	for k := 0; len(*nodes) < want; k++ {
		open := slices.DeleteFunc(slices.Clone(b.market.pools), func(p *pool) bool { return room[p] >= p.room })
		markFull(in.Types, b.market, room)
		got, err := b.policy.choosePool(b.market, open, in)
		if err != nil {
			return err
		}
		room[got]++
		*nodes = append(*nodes, node{got, fmt.Sprintf("%s-%d", now.Format(time.RFC3339), k)})
	}
	return nil
}

// markFull marks offers that EC2 refuses for want of room.
func markFull(types []instancetypes.Type, m *market, room map[*pool]int) {
	for i := range types {
		for k := range types[i].Offerings {
			o := &types[i].Offerings[k]
			if p := m.byName[spotpools.Pool{Type: o.Type, Zone: o.Zone}]; room[p] >= p.room {
				o.Available, o.Why = false, "InsufficientInstanceCapacity"
			}
		}
	}
}

// writeTable writes a table for each market, in Markdown.
func writeTable(w io.Writer, all []result, days int, seeds seedRange, podUSD float64) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%d days, %d seeds from %d on, %v USD for each pod that an interruption moves.\n", days, seeds.count, seeds.first, podUSD)
	for i, r := range all {
		base, best := all[i-i%len(policyNames())+1], all[i-i%len(policyNames())+3]
		if i%len(policyNames()) == 0 {
			fmt.Fprintf(&out, "\n### %s\n\n%s.\n\n| way | interruptions expected in 1,000 node hours | drawn | USD per node hour | price |\n|---|---|---|---|---|\n",
				strings.ToUpper(r.name[:1])+r.name[1:], strings.ToUpper(r.about[:1])+r.about[1:])
		}
		fmt.Fprintf(&out, "| %s | %.3f | %.3f | %.5f | %+.2f %% |\n", r.way, r.interruptionRate(),
			1000*r.interruptions/r.hours, r.hourlyPrice(), 100*(r.hourlyPrice()/base.hourlyPrice()-1))
		if i%len(policyNames()) == len(policyNames())-1 {
			fmt.Fprintf(&out, "\nLearning goes %s from %s to the oracle.\n",
				learnedPart(base.rates, all[i-1].rates, best.rates), byEC2)
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// learnedPart says which part of the way from base to best learning goes, with its standard error over the seeds, where
// there is a way.
func learnedPart(base, learns, best []float64) string {
	gone, all := 0.0, 0.0
	for i := range base {
		gone, all = gone+base[i]-learns[i], all+base[i]-best[i]
	}
	n := float64(len(base))
	if all/n < 0.02 {
		return "no way: there is none"
	}
	squares := 0.0
	for i := range base {
		off := base[i] - learns[i] - gone/all*(base[i]-best[i])
		squares += off * off
	}
	return fmt.Sprintf("%.0f ± %.0f %% of the way", 100*gone/all, 100*math.Sqrt(squares*n/max(1, n-1))/all)
}
