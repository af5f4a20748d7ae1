package ceiling

import "time"

// Pacing holds the pace at which a process launches. The zero value is as fast as it can.
type Pacing struct {
	Most    int       // launches of a pass, 0 for any number
	Refused int       // requests that the API server has refused as too many, when it was asked last
	At      time.Time // of the last change
}

// recovers is after how long without a refusal a pass may launch twice as many nodes.
const (
	recovers  = 10 * time.Second
	fullSpeed = 512 // from here on there is no bound
)

// Next is the pacing of a pass: half of what the last pass launched, and at least one, where the API server has refused
// more requests since, and twice as many for every ten seconds without.
func (p Pacing) Next(refused, launched int, now time.Time) Pacing {
	switch {
	case refused > p.Refused:
		most := max(1, launched/2)
		if p.Most > 0 {
			most = max(1, min(most, p.Most/2))
		}
		return Pacing{Most: most, Refused: refused, At: now}
	case p.Most == 0:
		return Pacing{Refused: refused}
	}
	for p.Most > 0 && !now.Before(p.At.Add(recovers)) {
		p.Most, p.At = 2*p.Most, p.At.Add(recovers)
		if p.Most >= fullSpeed {
			return Pacing{Refused: refused}
		}
	}
	return p
}
