package status

import (
	"joiner/pkg/cluster"
	"joiner/pkg/disrupt"
	"joiner/pkg/pack"
)

// fate is what disruption has in mind for each NodeClaim.
type fate struct {
	goes map[string]string // by claim: why it goes
	kept map[string]disrupt.Spared
}

func fates(s cluster.Snapshot, m disrupt.Memory, sells pack.Market) fate {
	p, _ := disrupt.Next(s, m, sells)
	f := fate{goes: map[string]string{}, kept: map[string]disrupt.Spared{}}
	for _, x := range p.Spared {
		f.kept[x.Claim] = x
	}
	note := func(all []disrupt.Command, as string) {
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

// of says whether a host may go by choice, and what becomes of it or keeps it.
func (f fate) of(h cluster.Host) (mayGo bool, why string) {
	if h.Claim == nil {
		return false, "no NodePool made it"
	}
	if why, ok := f.goes[h.Claim.Name]; ok {
		return true, why
	}
	kept, ok := f.kept[h.Claim.Name]
	switch {
	case !ok:
		return false, "not looked at"
	case kept.Word == "worth":
		return true, "goes when its pods can run for less"
	case kept.Word == "turn":
		return true, kept.Why
	}
	return false, kept.Why
}
