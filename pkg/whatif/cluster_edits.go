package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// setting is a change of a setting of the stack.
func setting(name, from, to string, change func(*cluster.Settings)) Edit {
	e := target{KindSetting, "", name}.edit(pathOf("value"), from, to, nil)
	e.make = func(s *cluster.Snapshot) { change(&s.Rules) }
	return e
}

// settingFamilies are edits of settings that bound what is launched.
func settingFamilies(r cluster.Settings) (out []family) {
	raised := func(name string, was int64, unit float64, set func(*cluster.Ceiling, int64)) {
		if was <= 0 {
			return
		}
		out = append(out, inSteps("", was, 1, mostSteps, func(to int64) Edit {
			return setting(name, formatDecimal(float64(was)/unit), formatDecimal(float64(to)/unit),
				func(r *cluster.Settings) { set(&r.Ceiling, to) })
		}))
	}
	raised("maxNodes", int64(r.Ceiling.Nodes), 1, func(c *cluster.Ceiling, n int64) { c.Nodes = int(n) })
	raised("maxNodesPerMinute", int64(r.Ceiling.NodesPerMinute), 1,
		func(c *cluster.Ceiling, n int64) { c.NodesPerMinute = int(n) })
	const cent = 10_000 // millionths of a USD
	raised("maxUSDPerHour", r.Ceiling.MillionthsUSD/cent, 100,
		func(c *cluster.Ceiling, n int64) { c.MillionthsUSD = n * cent })
	if !r.RelaxMinValues {
		out = append(out, single("", setting("minValuesPolicy", "Strict", "BestEffort",
			func(r *cluster.Settings) { r.RelaxMinValues = true })))
	}
	return out
}

// refusalFamilies lift what EC2 refuses for a reason that its owner can mend: quotas and addresses.
func refusalFamilies(s cluster.Snapshot) (out []family) {
	marks := map[string]int{}
	for _, m := range s.SoldOut {
		if awserrors.IsQuota(m.Why) {
			marks[m.Why]++
		}
	}
	for _, code := range slices.Sorted(maps.Keys(marks)) {
		e := target{KindEC2, "", code}.edit(pathOf("refusals"), fmt.Sprint(marks[code]), "0", nil)
		e.make = func(s *cluster.Snapshot) {
			s.SoldOut = slices.DeleteFunc(slices.Clone(s.SoldOut),
				func(m instancetypes.UnavailableOffering) bool { return m.Why == code })
		}
		out = append(out, single("", e))
	}
	return out
}

// classFamilies have an EC2NodeClass ready that is not, in each zone where it has no subnet at all.
func classFamilies(s cluster.Snapshot) (out []family) {
	for i, c := range s.Classes {
		if c.Ready || c.Unseen {
			continue
		}
		e := target{"EC2NodeClass", "", c.Name}.edit(pathOf("status.conditions", "[type=Ready]"),
			cmp.Or(c.Message, "False"), "True", nil)
		e.make = func(s *cluster.Snapshot) {
			if s.Classes[i].Ready = true; len(c.ZoneIDs) == 0 {
				s.Classes[i].ZoneIDs = s.Catalog.Zones
			}
			for j := range s.Pools {
				if p := &s.Pools[j]; p.Class == c.Name && strings.Contains(p.Message, "EC2NodeClass "+c.Name) {
					p.Ready = true
				}
			}
		}
		out = append(out, single("", e))
	}
	return out
}
