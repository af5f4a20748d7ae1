package main

import (
	"fmt"
	"slices"
	"time"
)

// spread is many durations in three figures.
type spread []time.Duration

// String tells median, 99th percentile and the longest.
func (s spread) String() string {
	return fmt.Sprintf("%6.2f  %6.2f  %6.2f", s.percentileSeconds(50), s.percentileSeconds(99),
		s.percentileSeconds(100))
}

// percentileSeconds is a percentile in seconds, 0 of nothing.
func (s spread) percentileSeconds(percent int) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[(len(sorted)-1)*percent/100].Seconds()
}

// inTurn pairs what was asked for with what came, the first with the first: nobody can tell which new node replaces
// which old one, but the n-th replacement must be there in time for the n-th notice. Of those that never came nothing
// is told.
func inTurn(asked, came []time.Time) (took spread) {
	slices.SortFunc(asked, time.Time.Compare)
	slices.SortFunc(came, time.Time.Compare)
	for i := range min(len(asked), len(came)) {
		took = append(took, came[i].Sub(asked[i]))
	}
	return took
}

// bootTimes are how long it took from running to the first pod bound, for the instances that are not among the known.
func (s *storm) bootTimes(known map[string]bool) (out spread) {
	instances := s.Cloud.DescribedInstances()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range instances {
		bound, ran := s.first[i.PrivateDNSName], s.running[i.ID]
		if !known[i.ID] && !bound.IsZero() && !ran.IsZero() {
			out = append(out, bound.Sub(ran))
		}
	}
	return out
}
