package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/cli/status"
	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/provisioning"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/whatif"
)

// mostPast bounds the entries of the past, mostOthers the types that are named beside one.
const (
	mostPast   = 20
	mostOthers = 5
)

// Source holds what answers are taken from.
type Source struct {
	Snapshot cluster.Snapshot
	View     status.View          // of the snapshot
	Records  []decisionlog.Record // of the decision log, the oldest first; none if nobody gave them
	Memory   disruption.Memory    // what disrupt remembered last, the zero value if nobody knows
	Search   whatif.Limits        // of the search for what would help
	Asked    PodState             // of the pod that is asked about, the zero value if nobody knows
}

// PodState holds what the API server says of one pod that no snapshot has: passes do not read pods that have ended.
type PodState struct {
	Scheduler    string // spec.schedulerName
	Fargate      bool   // AWS Fargate runs it
	Phase, Cause string // status.phase and status.reason
	NodeName     string
	Resize       string // reason and message of the condition PodResizePending; empty where there is none
}

// Answer is an explanation.
type Answer struct {
	Subject string   `json:"subject"`        // kind and name
	Verdict string   `json:"verdict"`        // one sentence
	Why     []string `json:"why,omitempty"`  // sentences
	Past    []string `json:"past,omitempty"` // of the decision log: time and what was decided

	// what would change the answer; nil where nobody asks for another
	WhatIf *whatif.Answer `json:"whatIf,omitempty"`
}

// NotFoundError says that there is no such thing, and what has a similar name.
type NotFoundError struct {
	Kind, Name string
	Similar    []string
}

// Error names what was looked for, and what there is.
func (e *NotFoundError) Error() string {
	s := fmt.Sprintf("there is no %s %s", e.Kind, e.Name)
	if len(e.Similar) > 0 {
		s += "; there is " + strings.Join(e.Similar, ", ")
	}
	return s
}

// ExplainPod explains the pod namespace/name.
func ExplainPod(s Source, key string, sells binpack.Offerings) (Answer, error) {
	i := slices.IndexFunc(s.Snapshot.Pods, func(p cluster.Pod) bool { return p.Key() == key && !p.Virtual })
	known := s.Asked
	if i >= 0 && s.Snapshot.Pods[i].Terminal() {
		known.Phase, known.NodeName = s.Snapshot.Pods[i].Phase, s.Snapshot.Pods[i].NodeName
	}
	if (cluster.Pod{Phase: known.Phase}).Terminal() {
		return Answer{Subject: "pod " + key, Verdict: known.ending(), Past: s.pastOfPod(key)}, nil
	}
	if i < 0 {
		return Answer{}, suggestSimilar("pod", key, podNames(s.Snapshot))
	}
	p := s.Snapshot.Pods[i]
	a := Answer{Subject: "pod " + key, Past: s.pastOfPod(key)}
	switch {
	case p.NodeName != "":
		a.Verdict = "it is on node " + p.NodeName
		if n, ok := s.findNode(p.NodeName); ok {
			a.Verdict += fmt.Sprintf(": %s", nodeKind(n))
		}
		a.Why = append(a.Why, fmt.Sprintf("it asks for %s", p.Need))
		if known.Resize != "" {
			a.Why = append(a.Why, "its resize is "+known.Resize+
				"; no node is made for a resize, but another pod in its stead gets one that is large enough")
		}
	case !p.Provisionable():
		a.Verdict = "no node is made for it: " + s.notProvisionable(p)
	default:
		a.Verdict, a.Why = podOutlook(p, provisioning.Decide(s.Snapshot).Plan)
	}
	if w := whatif.ForPod(s.Snapshot, sells, key, s.Search); w.Questions > 0 {
		a.WhatIf = &w
	}
	if known.Scheduler != "" && known.Scheduler != defaultScheduler && !known.Fargate {
		a.Why = append(a.Why, "its schedulerName is "+known.Scheduler+
			": that scheduler decides where it goes, and Joiner reads what it says in the condition PodScheduled")
	}
	if len(p.Requires) > 0 {
		a.Why = append(a.Why, "its node must have "+strings.Join(p.Requires, ", "))
	}
	if len(p.Unmodelled) > 0 {
		a.Why = append(a.Why, "what cannot be planned for: "+strings.Join(p.Unmodelled, "; "))
	}
	if p.Protected(s.Snapshot.Now) {
		a.Why = append(a.Why, "it must not be disrupted ("+v1.AnnotationDoNotDisrupt+"): its node stays where the choice is ours")
	}
	return a, nil
}

// defaultScheduler is spec.schedulerName of pods that kube-scheduler places.
const defaultScheduler = "default-scheduler"

// ending says of a pod that has ended how, and where.
func (p PodState) ending() string {
	how := strings.TrimSuffix(p.Phase+", "+p.Cause, ", ")
	if p.NodeName == "" {
		return "it has ended (" + how + "), without a node"
	}
	return "it has ended (" + how + "), on node " + p.NodeName + ", where it takes no room any more"
}

func (s Source) notProvisionable(p cluster.Pod) string {
	switch {
	case p.Terminating():
		return "it is being deleted"
	case s.Asked.Fargate:
		return "AWS Fargate runs it, which makes a node for it alone; its events say why it waits"
	case p.Owner == cluster.OwnerDaemonSet:
		return "it is of a DaemonSet, which follows nodes"
	case p.Owner == cluster.OwnerNode:
		return "it is a static pod of its node"
	case p.Nominated != "":
		return "the scheduler makes room for it on " + p.Nominated + " by preemption"
	case !p.Unscheduled:
		return "the scheduler has not said yet that no node can take it (a scheduling gate, or it was made just now)"
	}
	return "it asks to be on no node of a NodePool"
}

// podOutlook returns what a pass would do for the pod.
func podOutlook(p cluster.Pod, made plan.Plan) (verdict string, why []string) {
	for _, l := range made.Launches {
		if slices.Contains(l.Pods, p.Key()) {
			return fmt.Sprintf("the next pass launches a node for it: %s from pool %s at %s", l.Choice.OfferingKey, l.Pool,
					l.PriceText()),
				[]string{fmt.Sprintf("the node is for %d pods, which ask for %s with its daemons; %d types are possible", len(l.Pods), l.Requests, len(l.Types))}
		}
	}
	for _, e := range made.Existing {
		if e.Pod == p.Key() {
			return "it fits on " + e.Node + ", which is there or on its way; the scheduler puts it there", nil
		}
	}
	for _, u := range made.Unplaced {
		if u.Pod == p.Key() {
			return "no NodePool can give it a node", u.Why
		}
	}
	return "it waits for the next pass", nil
}

// ExplainNode explains a node, by its name or that of its NodeClaim.
func ExplainNode(s Source, name string, sells binpack.Offerings) (Answer, error) {
	n, ok := s.findNode(name)
	if !ok {
		return Answer{}, suggestSimilar("node", name, s.nodeNames())
	}
	node, _ := s.stateNode(n.Name)
	a := Answer{Subject: "node " + n.Name, Verdict: fmt.Sprintf("it is %s: %s", n.Phase, nodeKind(n)),
		Past: s.pastOfNode(n)}
	a.Why = append(a.Why, fmt.Sprintf("%d pods are on it; they ask for %s of its cpu and %s of its memory", n.Pods,
		status.FormatPercent(n.CPU), status.FormatPercent(n.Memory)))
	if node.Claim != nil {
		a.Why = append(a.Why, s.whyThisType(n, *node.Claim, sells)...)
		for _, c := range node.Claim.Conditions {
			if c.Status != "True" && c.Message != "" {
				a.Why = append(a.Why, fmt.Sprintf("its condition %s is %s: %s", c.Type, c.Status, c.Message))
			}
		}
	}
	a.Why = append(a.Why, status.PriceLines(n.HourlyUSD, n.Parts)...)
	verb := "disruption spares it: "
	if n.MayGo {
		verb = "disruption may take it: "
	}
	a.Why = append(a.Why, verb+n.Why)
	if node.Claim != nil {
		if w := whatif.ForNode(s.Snapshot, s.Memory, sells, node.Claim.Name, s.Search); w.Questions > 0 {
			a.WhatIf = &w
		}
	}
	return a, nil
}

// whyThisType compares the node with the other offerings that its claim may be.
func (s Source) whyThisType(n status.Node, c cluster.Claim, sells binpack.Offerings) []string {
	pool, found := s.Snapshot.PoolOf(c.Pool)
	if !found {
		return []string{"its NodePool " + c.Pool + " is gone"}
	}
	var all []instancetypes.Offering
	for _, t := range overlays.ByPool(s.Snapshot, sells)(pool) {
		if !c.Requirements.Has(instancetypes.LabelType, t.Name) || !c.Requests.FitsIn(t.Allocatable) {
			continue
		}
		for _, o := range t.Offerings {
			if o.Available && len(o.Paid) == 0 && o.Meets(c.Requirements) {
				all = append(all, o)
			}
		}
	}
	slices.SortFunc(all, func(a, b instancetypes.Offering) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.String(), b.String()))
	})
	out := []string{fmt.Sprintf("its NodeClaim %s of pool %s asks for %s; %d offerings that it may be can be had now",
		c.Name, c.Pool, c.Requests, len(all))}
	var cheaper []string
	for _, o := range all {
		if !n.Priced || o.Price >= n.HourlyUSD-1e-9 {
			break
		}
		cheaper = append(cheaper, fmt.Sprintf("%s at %.4f", o.OfferingKey, o.Price))
	}
	switch {
	case !n.Priced:
	case len(cheaper) == 0:
		out = append(out, fmt.Sprintf("none of them is cheaper than its %.4f USD/h", n.HourlyUSD))
	default:
		more := ""
		if len(cheaper) > mostOthers {
			more = fmt.Sprintf(" and %d more", len(cheaper)-mostOthers)
		}
		out = append(out, "cheaper at the prices of now: "+strings.Join(cheaper[:min(len(cheaper), mostOthers)],
			", ")+more+"; EC2 chose among what it had, or prices have changed")
	}
	return out
}

// ExplainPool explains a NodePool.
func ExplainPool(s Source, name string, sells binpack.Offerings) (Answer, error) {
	p, ok := s.Snapshot.PoolOf(name)
	if !ok {
		return Answer{}, suggestSimilar("nodepool", name, poolNames(s.Snapshot))
	}
	a := Answer{Subject: "nodepool " + name, Verdict: "it is ready", Past: s.pastOfPool(name)}
	switch {
	case p.Deleting:
		a.Verdict = "it is being deleted: nothing is launched from it"
	case p.Static:
		a.Verdict = "it is static (replicas): no node is launched from it for pods"
	case !p.Ready:
		a.Verdict = "nothing is launched from it: " + p.Message
	}
	if budgets.IsHibernating(p.Disruption, s.Snapshot.Now) {
		a.Verdict = fmt.Sprintf("it sleeps, for %s from each %q on: nothing is launched from it and its nodes go",
			p.Disruption.SleepFor, p.Disruption.SleepAt)
	}
	usd := 0.0
	for _, v := range s.View.Pools {
		if v.Name == name {
			usd = v.Sum.HourlyUSD
			a.Why = append(a.Why, fmt.Sprintf("it has %d nodes for %.4f USD/h with %d pods; cpu %s, memory %s asked for", v.Sum.Nodes, v.Sum.HourlyUSD, v.Sum.Pods,
				status.FormatPercent(v.Sum.CPU), status.FormatPercent(v.Sum.Memory)))
			a.Why = append(a.Why, status.PriceLines(v.Sum.HourlyUSD, v.Sum.Parts)...)
		}
	}
	a.Why = append(a.Why, explainLimits(p, usd)...)
	switch d := p.Disruption; {
	case d.Message != "":
		a.Why = append(a.Why, "no node of it is disrupted by choice until this is mended: "+d.Message)
	case d.ReportOnly:
		a.Why = append(a.Why, "disruption of its nodes is only reported")
	}
	for _, r := range []v1.DisruptionReason{v1.DisruptionEmpty, v1.DisruptionDrifted, v1.DisruptionUnderutilized} {
		left, err := budgets.RemainingDisruptions(s.Snapshot, p, r)
		switch {
		case err != nil && p.Disruption.Message != "": // which says so
		case err != nil:
			a.Why = append(a.Why, fmt.Sprintf("disruption %s: none, its budgets cannot be understood: %v", r, err))
		case left < budgets.Unlimited/2:
			a.Why = append(a.Why, fmt.Sprintf("disruption %s: its budgets let %d more nodes go now", r, left))
		default:
			a.Why = append(a.Why, fmt.Sprintf("disruption %s: no budget bounds it now", r))
		}
	}
	against := map[string]int{}
	for _, u := range provisioning.Decide(s.Snapshot).Plan.Unplaced {
		for _, why := range u.Why {
			if strings.Contains(why, "pool "+name+":") || strings.Contains(why, name+",") ||
				strings.Contains(why, ", "+name) {
				against[why]++
			}
		}
	}
	for _, why := range slices.Sorted(maps.Keys(against)) {
		a.Why = append(a.Why, fmt.Sprintf("%d pods that wait cannot use it: %s", against[why], why))
	}
	a.Why = append(a.Why, s.poolHelp(name, sells)...)
	return a, nil
}

// poolHelp returns what would let the first of the pool's nodes go that stay.
func (s Source) poolHelp(name string, sells binpack.Offerings) (why []string) {
	const most = 3
	asked := 0
	for _, p := range s.View.Pools {
		for _, n := range p.Nodes {
			if p.Name != name || n.MayGo || n.Claim == "" || asked == most {
				continue
			}
			asked++
			if w := whatif.ForNode(s.Snapshot, s.Memory, sells, n.Claim, s.Search); len(w.Changes) > 0 {
				why = append(why, fmt.Sprintf("node %s stays; would help: %s", n.Name, w.Changes[0]))
			}
		}
	}
	return why
}

// explainLimits says how much of each limit of the pool is used; usd is what its nodes cost per hour.
func explainLimits(p cluster.Pool, usd float64) (why []string) {
	for _, limit := range p.Limited {
		if limit == cluster.LimitUSD {
			why = append(why, fmt.Sprintf("limit on the price: %.4f of %.4f USD/h used", usd,
				float64(p.Limits.Get(limit))/1e6))
			continue
		}
		why = append(why, fmt.Sprintf("limit %s: %s of %s used", limit, amountText(limit, p.Counted.Get(limit)),
			amountText(limit, p.Limits.Get(limit))))
	}
	return why
}

func nodeKind(n status.Node) string {
	s := strings.TrimSpace(n.CapacityType + " " + n.Type)
	if n.Zone != "" {
		s += " in " + n.Zone
	}
	if n.Priced {
		s += fmt.Sprintf(" at %.4f USD/h", n.HourlyUSD)
	}
	return s + ", " + status.FormatAge(n.Age) + " old"
}

func stampOf(r decisionlog.Record) string { return r.Time.UTC().Format(time.RFC3339) + " " }
