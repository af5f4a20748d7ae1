package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mayBeDown is the percentage of the pods that their PodDisruptionBudget lets go at a time.
const mayBeDown = 25

// longestChain is how often a function may run in a chain of invocations that ask for each other. Lambda takes 16 for a
// loop.
const longestChain = 8

// outcome is what is known after a storm besides what was watched.
type outcome struct {
	struck   []*victim
	known    map[string]bool // instances from before
	pods     int
	requests ledgerOf // to the API server
	forced   int      // pods that were deleted for want of time and not evicted
}

// countForced counts the pods that were deleted and not evicted, by the events that tell of it.
func (s *storm) countForced(ctx context.Context) (n int, err error) {
	list, err := s.Kube.CoreV1().Events("default").List(ctx,
		metav1.ListOptions{FieldSelector: "reason=Disrupted,involvedObject.kind=Pod"})
	if err != nil {
		return 0, fmt.Errorf("list events: %w", err)
	}
	return len(list.Items), nil
}

// judgeOutcome says what the storm did, and what must not have happened.
func (s *storm) judgeOutcome(o outcome) error {
	launches, bound := s.Cloud.LaunchTimes(o.known), s.bootTimes(o.known)
	s.mu.Lock()
	defer s.mu.Unlock()
	var taint, empty spread
	var noticed []time.Time
	late := 0
	for _, v := range o.struck {
		noticed = append(noticed, v.noticed)
		if !v.tainted.IsZero() {
			taint = append(taint, v.tainted.Sub(v.noticed))
		}
		if !v.empty.IsZero() {
			empty = append(empty, v.empty.Sub(v.noticed))
		}
		if v.empty.IsZero() || v.empty.Sub(v.noticed) >= notice {
			late++
		}
	}
	fleet := inTurn(noticed, launches)
	n := len(o.struck)
	fmt.Printf("storm of %d notices, in seconds:                 median     p99   worst\n", n)
	fmt.Printf("  notice to taint                                %s   of %d\n", taint, len(taint))
	fmt.Printf("  n-th notice to n-th CreateFleet                %s   of %d\n", fleet, len(fleet))
	fmt.Printf("  running to a pod bound (2 s until the kubelet) %s   of %d\n", bound, len(bound))
	fmt.Printf("  notice to the last pod gone                    %s   of %d\n", empty, len(empty))
	s.tellCosts(o)
	var broken []error
	rule := func(bad bool, format string, args ...any) {
		if bad {
			broken = append(broken, fmt.Errorf(format, args...))
		}
	}
	rule(late > 0, "%d of %d nodes were not empty when their instances ended", late, n)
	rule(len(launches) > n, "%d instances were launched for %d that went", len(launches), n)
	rule(fleet.percentileSeconds(100) >= notice.Seconds() || len(fleet) < n,
		"replacements came late, or only %d of %d", len(fleet), n)
	each := (o.pods + s.apps - 1) / s.apps
	least := o.pods - s.apps*((each*mayBeDown+99)/100) // budgets round up
	rule(s.least < least && o.forced == 0, "only %d pods were ready at a time, the budgets ask for %d", s.least, least)
	for name, f := range s.Host.CurrentStats().Functions {
		rule(f.LongestChain > longestChain, "%s ran %d times in a chain of invocations", name, f.LongestChain)
	}
	if len(broken) > 0 {
		return errors.Join(broken...)
	}
	fmt.Printf("storm passed. It proved that of %d nodes that EC2 took back within a minute each was empty before its instance ended and had its\n"+
		"replacement asked for in time, that none was replaced twice, and that budgets were kept but for %d pods that had no time left.\n", n, o.forced)
	return nil
}

// tellCosts says what the storm took. The lock is held.
func (s *storm) tellCosts(o outcome) {
	counts := s.Cloud.CallCounts()
	fmt.Printf("  pods ready at any time: %d of %d or more; %d pods deleted at their deadline, the others evicted\n",
		s.least, o.pods, o.forced)
	fmt.Printf("  calls of AWS: %d CreateFleet, %d TerminateInstances, %d DescribeInstances, %d invocations asked for\n", counts["ec2:CreateFleet"],
		counts["ec2:TerminateInstances"], counts["ec2:DescribeInstances"], counts["lambda:Invoke"])
	o.requests.printRequests(len(o.struck))
	stats := s.Host.CurrentStats().Functions
	for _, name := range slices.Sorted(maps.Keys(stats)) {
		if f := stats[name]; f.Invocations > 0 {
			fmt.Printf("  %-40s %5d invocations, %d errors (%d time-outs), %d throttles, %d given up\n", name,
				f.Invocations, f.Errors, f.TimedOut,
				f.Throttles, len(f.DeadLetters))
		}
	}
}
