package stack

import (
	"slices"

	"joiner.sh/pkg/settings"
)

// planConcurrency gives the clusters that leave it open a share of their account's concurrency. Clusters without
// account or region are in those of the credentials, which nobody knows at synthesis: they count as one place.
func planConcurrency(all []Props) []Props {
	out := slices.Clone(all)
	type place struct{ account, region string }
	members := map[place][]int{}
	for i, p := range all {
		at := place{p.Stack.Account, p.Stack.Region}
		members[at] = append(members[at], i)
	}
	for _, at := range members {
		var asked []settings.Concurrency
		for _, i := range at {
			asked = append(asked, all[i].askedConcurrency())
		}
		planned := settings.PlanConcurrency(asked)
		for n, i := range at {
			out[i].Stack.InterruptionConcurrency = planned[n].Spot
			out[i].ReservationConcurrency = planned[n].Reservation
		}
	}
	return out
}

// askedConcurrency is the concurrency that the cluster asks for.
func (p Props) askedConcurrency() settings.Concurrency {
	if !p.Stack.InterruptionHandling {
		p.Stack.InterruptionConcurrency = 0
	}
	alone := 0
	for _, f := range p.functions() {
		if f.alone {
			alone++
		}
	}
	return settings.NewConcurrency(alone, p.Stack.InterruptionConcurrency)
}
