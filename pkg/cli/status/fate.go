package status

import (
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/binpack"
)

// disruptionFate holds what disruption has in mind for each NodeClaim.
type disruptionFate struct {
	goes map[string]string // by claim: why it goes
	kept map[string]disruption.NotDisrupted
}

func disruptionFates(s cluster.Snapshot, m disruption.Memory, sells binpack.Offerings) disruptionFate {
	p, _ := disruption.Next(s, m, sells)
	f := disruptionFate{goes: map[string]string{}, kept: map[string]disruption.NotDisrupted{}}
	for _, x := range p.NotDisrupted {
		f.kept[x.Claim] = x
	}
	note := func(all []disruption.Command, as string) {
		for _, c := range all {
			for _, name := range c.Claims {
				f.goes[name] = as + ": " + string(c.Reason)
			}
		}
	}
	note(p.Reported, "would go, if its pool did not only report")
	note(p.Proposed, "goes soon")
	note(p.Begin, "goes")
	return f
}

// fateOf says whether a host may go by choice, and what becomes of it or keeps it.
func (f disruptionFate) fateOf(node cluster.StateNode) (mayGo bool, why string) {
	if node.Claim == nil {
		return false, "no NodePool made it"
	}
	if why, ok := f.goes[node.Claim.Name]; ok {
		return true, why
	}
	kept, ok := f.kept[node.Claim.Name]
	switch {
	case !ok:
		return false, "not looked at"
	case kept.Reason == disruption.IneligibleNoCheaperAlternative:
		return true, "goes when its pods can run for less"
	case kept.Reason == disruption.IneligibleOtherCommand:
		return true, kept.Why
	}
	return false, kept.Why
}
