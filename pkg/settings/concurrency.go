package settings

// Auto is the value of a setting that is found out: concurrency is planned with that of the other clusters of its
// account, memory by the nodes of the cluster.
const Auto = -1

// Lambda's concurrency, in invocations at once.
const (
	// accountQuota is the number of invocations that AWS lets an account run at once in a region (quota L-B99A9384)
	// unless it asks for more.
	accountQuota = 1000
	// leastUnreserved is the number that Lambda has every account keep for functions that reserve nothing.
	leastUnreserved = 100
	// mostForSpot is enough for 1,000 spot notices a minute with a wide margin, leastForSpot for 300. What is reserved
	// is a ceiling too, so that fewer would be worse than a share of what is left.
	mostForSpot, leastForSpot = 100, 20
	// forReservations is for notices that nearly nobody gets.
	forReservations = 10
	// autoPart is the part of what can be reserved that clusters with Auto may take together, the other being shared.
	autoPart = 0.5
)

// Concurrency holds what a cluster reserves of its account's concurrency.
type Concurrency struct {
	Alone       int // by functions that run one at a time
	Spot        int // by spotinterruption: 0 for none, Auto
	Reservation int // by reservationinterruption, the same
}

// NewConcurrency returns what a cluster asks for that reserves so much for spot notices, or Auto.
func NewConcurrency(alone, spot int) Concurrency {
	return Concurrency{Alone: alone, Spot: spot, Reservation: min(spot, forReservations)}
}

// PlanConcurrency replaces Auto by what the account has for each of the clusters: an equal share of half of what can be
// reserved of the usual quota and nobody in the list has reserved. A share that is too small is none, so that the
// cluster's notices share what is left with all other functions. The list holds all clusters of one account and region.
func PlanConcurrency(clusters []Concurrency) []Concurrency {
	left, auto := accountQuota-leastUnreserved, 0
	for _, c := range clusters {
		left -= c.Alone + max(c.Spot, 0) + max(c.Reservation, 0)
		if c.Spot == Auto || c.Reservation == Auto {
			auto++
		}
	}
	out := make([]Concurrency, len(clusters))
	for i, c := range clusters {
		out[i] = c.plan(int(autoPart*float64(max(left, 0))) / max(auto, 1))
	}
	return out
}

// plan replaces Auto by what the share is enough for, notices of spot first.
func (c Concurrency) plan(share int) Concurrency {
	if share < leastForSpot {
		share = 0
	}
	spot, reservation := c.Spot, c.Reservation
	if spot == Auto {
		spot = min(share, mostForSpot)
		share -= spot
	}
	if reservation == Auto {
		if reservation = forReservations; share < forReservations {
			reservation = 0
		}
	}
	return Concurrency{Alone: c.Alone, Spot: spot, Reservation: reservation}
}
