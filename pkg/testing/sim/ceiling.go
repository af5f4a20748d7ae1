package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// deployedCeiling is a ceiling of the cluster since it was deployed. An invocation keeps what was in force when it
// began, so that two may be at once.
type deployedCeiling struct {
	since time.Time
	cluster.Ceiling
}

// ceilings holds the ceilings that were deployed, the latest last. Their chance is a stream of its own.
type ceilings struct {
	rng  *rand.Rand
	list []deployedCeiling
}

// oldVersion is the time for which something may still be done by what was deployed before: an invocation, and what it
// sent.
const oldVersion = time.Minute + late

// deployCeilings deploys a ceiling, another one in the middle of the storm, and none at its end, in a quarter of the
// runs or wherever it is asked for.
func (w *world) deployCeilings(seed uint64, always bool) {
	w.ceilings.rng = rand.New(rand.NewPCG(seed, 0x6365696c))
	if w.ceilings.rng.IntN(4) > 0 && !always {
		return
	}
	w.deployCeiling()
	w.runAfter(w.plan.storm/2, w.deployCeiling)
}

func (w *world) deployCeiling() {
	rng := w.ceilings.rng
	c := cluster.Ceiling{Nodes: 2 + rng.IntN(8)}
	if rng.IntN(2) == 0 {
		c.NodesPerMinute = 1 + rng.IntN(4)
	}
	if rng.IntN(3) == 0 {
		c.MillionthsUSD = 200_000 + int64(rng.IntN(1_500_000))
	}
	if w.trouble {
		w.useCeiling(c)
	}
}

func (w *world) useCeiling(c cluster.Ceiling) {
	w.addTrace("a ceiling of %d nodes, %d a minute, %d millionths of USD is deployed", c.Nodes, c.NodesPerMinute,
		c.MillionthsUSD)
	w.ceilings.list = append(w.ceilings.list, deployedCeiling{time.Now(), c})
}

// current is the ceiling of an invocation that begins now.
func (c *ceilings) current() cluster.Ceiling {
	if len(c.list) == 0 {
		return cluster.Ceiling{}
	}
	return c.list[len(c.list)-1].Ceiling
}

// highest returns the ceiling that may be in force now for anybody: each bound at its highest, math.MaxInt where there
// may be none.
func (c *ceilings) highest() cluster.Ceiling {
	none := cluster.Ceiling{Nodes: math.MaxInt, NodesPerMinute: math.MaxInt, MillionthsUSD: math.MaxInt64}
	if len(c.list) == 0 || time.Since(c.list[0].since) < oldVersion {
		return none
	}
	out := cluster.Ceiling{}
	for i, one := range c.list {
		if i+1 < len(c.list) && time.Since(c.list[i+1].since) > oldVersion {
			continue
		}
		out.Nodes = max(out.Nodes, orMost(one.Nodes, none.Nodes))
		out.NodesPerMinute = max(out.NodesPerMinute, orMost(one.NodesPerMinute, none.NodesPerMinute))
		out.MillionthsUSD = max(out.MillionthsUSD, orMost(one.MillionthsUSD, none.MillionthsUSD))
	}
	return out
}

func orMost[N int | int64](n, most N) N {
	if n == 0 {
		return most
	}
	return n
}

// checkCeiling: no instance starts above a bound of the whole cluster. What is leaked does not count, and is ended.
func checkCeiling(w *world, s instanceStarted) (bad []string) {
	most := w.ceilings.highest()
	nodes, recent, usd := 1, 1, chargeOf(w, s.machine)
	waiting := waitingForBatches(w)
	for _, m := range w.ec2.livingInstances() {
		if m == s.machine {
			continue
		}
		if m.owner == "" {
			if waiting[m.Batch]--; waiting[m.Batch] < 0 {
				continue
			}
		} else if c := w.api.byUID[m.owner]; c == nil || w.api.claims[c.Name] != c {
			continue
		}
		nodes, usd = nodes+1, usd+chargeOf(w, m)
		if time.Since(m.Launched) < time.Minute {
			recent++
		}
	}
	if nodes > most.Nodes {
		bad = append(bad, fmt.Sprintf("with %s there are %d nodes, and %d are allowed", s.machine.ID, nodes, most.Nodes))
	}
	if recent > most.NodesPerMinute {
		bad = append(bad, fmt.Sprintf("with %s %d nodes come within a minute, and %d are allowed", s.machine.ID, recent,
			most.NodesPerMinute))
	}
	if usd > most.MillionthsUSD {
		bad = append(bad, fmt.Sprintf("with %s nodes cost %d millionths of a USD, and %d are allowed", s.machine.ID, usd,
			most.MillionthsUSD))
	}
	return bad
}

func chargeOf(w *world, m *machine) int64 {
	usd, _ := w.catalog.market.Charge(instancetypes.OfferingKey{Type: m.Type, Zone: m.Zone,
		CapacityType: m.CapacityType})
	return cluster.MillionthsUSD(usd)
}
