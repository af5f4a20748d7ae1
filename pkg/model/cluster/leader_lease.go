package cluster

import "time"

// LeaderLease is a lease by which a controller of somebody else says that it leads the cluster.
type LeaderLease struct {
	Holder  string // empty for nobody
	Renewed time.Time
	Lasts   time.Duration
}

// longestBelieved is the time after its renewal, and how far ahead of our clock, for which a lease of somebody else is
// believed. Karpenter renews its own every few seconds, for 15. Who may write one object in its namespace could
// otherwise keep Joiner from acting for good.
const longestBelieved = time.Minute

// Leads reports whether the lease has a holder, and holds at the time now as far as it is believed.
func (l LeaderLease) Leads(now time.Time) bool {
	age := now.Sub(l.Renewed)
	return l.Holder != "" && !l.Renewed.IsZero() && age < l.Lasts && -longestBelieved < age && age < longestBelieved
}
