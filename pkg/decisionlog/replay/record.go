package replay

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
)

const mostText = 300 // bytes of a reason

// newRecord says whose pass it was and what nodes there were.
func newRecord(st decisionlog.PassStamp, s cluster.Snapshot) decisionlog.Record {
	r := decisionlog.Record{Schema: decisionlog.Schema, Time: s.Now.UTC().Round(0), PassStamp: st, Prices: "built in"}
	if !s.Catalog.Time.IsZero() {
		r.Prices = s.Catalog.Time.UTC().Format(time.RFC3339)
	}
	for _, node := range s.StateNodes() {
		labels := node.Labels()
		usd, _ := s.Catalog.Charge(instancetypes.OfferingKey{CapacityType: labels[instancetypes.LabelCapacityType],
			Type: labels[instancetypes.LabelType], Zone: labels[instancetypes.LabelZone]})
		r.Fleet.AllUSD += usd
		if node.Pool() == "" {
			r.Fleet.Foreign++
			continue
		}
		r.Fleet.Nodes++
		r.Fleet.HourlyUSD += usd
	}
	return r
}

// addLaunches adds what provision decided.
func addLaunches(r *decisionlog.Record, p plan.Plan) {
	for _, l := range p.AllLaunches() {
		if len(r.Launches) == decisionlog.MostEntries {
			r.More++
			continue
		}
		r.Launches = append(r.Launches, decisionlog.Launch{Pool: l.Pool, Type: l.Choice.Type, Zone: l.Choice.Zone,
			CapacityType: l.Choice.CapacityType,
			HourlyUSD:    l.Choice.Price, Types: len(l.Types), Pods: len(l.Pods),
			Names: decisionlog.FirstNames(l.Pods)})
	}
	r.HourlyUSD, r.LowerBoundUSD, r.Gap = p.TotalPrice(), p.LowerBoundUSD, p.BoundGap()
	r.Placed = len(p.Existing)
	unplaced, skipped := reasonCounts{}, reasonCounts{}
	for _, u := range p.Unplaced {
		unplaced.addReason(strings.Join(u.Why, "; "), u.Pod)
	}
	for _, s := range p.Skipped {
		skipped.addReason(s.Why, s.Pool)
	}
	for _, s := range p.Short {
		skipped.addReason(s.Why, s.Pool)
	}
	for _, x := range p.Removals {
		addRemoval(r, decisionlog.DisruptionStage{Stage: "scale", Claims: []string{x.Claim}, Why: x.Why})
	}
	r.AddFaults(p.Faults...)
	r.Unplaced, r.Skipped = commonest(r, unplaced), commonest(r, skipped)
}

// addRemovals adds what disrupt decided.
func addRemovals(r *decisionlog.Record, p disruption.Plan) {
	ends := func(stage string, all []disruption.EndedCommand) {
		for _, e := range all {
			addRemoval(r, decisionlog.DisruptionStage{Stage: stage, Claims: e.Claims, Why: e.Why})
		}
	}
	commands := func(stage string, all []disruption.Command) {
		for _, c := range all {
			x := decisionlog.DisruptionStage{Stage: stage, Reason: string(c.Reason), Claims: c.Claims,
				SavesUSD: c.SavesUSD, Moves: c.Moves}
			for _, l := range c.Launches {
				x.Replaces = append(x.Replaces, l.Choice.String())
			}
			addRemoval(r, x)
		}
	}
	ends("finish", p.Finish)
	ends("rollback", p.RollBack)
	commands("begin", p.Begin)
	commands("propose", p.Proposed)
	commands("report", p.Reported)
	r.AddFaults(p.Faults...)
	stay := reasonCounts{}
	for _, s := range p.NotDisrupted {
		stay.addReason(s.Why, cmp.Or(s.Node, s.Claim))
	}
	r.NotDisrupted = commonest(r, stay)
}

func addRemoval(r *decisionlog.Record, x decisionlog.DisruptionStage) {
	if len(r.Removals) == decisionlog.MostEntries {
		r.More++
		return
	}
	r.Removals = append(r.Removals, x)
}

// reasonCounts gathers what is so for the same reason.
type reasonCounts map[string]*decisionlog.Reason

func (all reasonCounts) addReason(why, name string) {
	if len(why) > mostText {
		why = strings.ToValidUTF8(why[:mostText], "") + "..."
	}
	if all[why] == nil {
		all[why] = &decisionlog.Reason{Why: why}
	}
	x := all[why]
	x.Count++
	if len(x.Names) < decisionlog.MostNames {
		x.Names = append(x.Names, name)
	}
}

// commonest sorts reasons by how common they are, and cuts off what is more than a record holds.
func commonest(r *decisionlog.Record, all reasonCounts) []decisionlog.Reason {
	var out []decisionlog.Reason
	for _, x := range all { // sorted below
		slices.Sort(x.Names)
		out = append(out, *x)
	}
	slices.SortFunc(out, func(a, b decisionlog.Reason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count),
			cmp.Compare(a.Why, b.Why))
	})
	if len(out) > decisionlog.MostEntries {
		r.More += len(out) - decisionlog.MostEntries
		out = out[:decisionlog.MostEntries]
	}
	return out
}
