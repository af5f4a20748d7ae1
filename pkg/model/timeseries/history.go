package timeseries

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/metrics"
)

// mostStarting caps the pods that are remembered until they are ready.
const mostStarting = 20_000

// History holds what one observation tells the next, and what has been counted since the first.
type History struct {
	At       time.Time             `json:"at"` // of the last observation, zero for none
	Totals   Totals                `json:"totals,omitempty"`
	Claims   map[string]knownClaim `json:"claims,omitempty"`   // by UID
	Starting map[string]time.Time  `json:"starting,omitempty"` // pods not ready, by UID: since when planned for
	Impaired map[string]bool       `json:"impaired,omitempty"` // instances that fail a status check, with the check
	Refused  map[string]time.Time  `json:"refused,omitempty"`  // offerings, and until when they are marked
}

// knownClaim is a NodeClaim as it was seen last.
type knownClaim struct {
	Name         string    `json:"name"`
	Pool         string    `json:"pool,omitempty"`
	CapacityType string    `json:"capacityType,omitempty"`
	Zone         string    `json:"zone,omitempty"`
	Created      time.Time `json:"created"`
	Node         time.Time `json:"node,omitzero"` // when it was made
	Registered   bool      `json:"registered,omitempty"`
	Drained      bool      `json:"drained,omitempty"`
	Deleting     time.Time `json:"deleting,omitzero"`
	NodeDeleting time.Time `json:"nodeDeleting,omitzero"`
	Ending       time.Time `json:"ending,omitzero"` // since when the instance is terminated
	Disrupted    bool      `json:"disrupted,omitempty"`
	Notice       string    `json:"notice,omitempty"` // of EC2, that was counted
}

// Activity holds what was done between two observations and stands nowhere.
type Activity struct {
	Deleted     map[string]string // NodeClaims by name: the reason that they were deleted for
	Evictions   map[string]int    // by the code that the API server answered with
	PodsDrained map[string]int    // by reason
}

// observer is one observation under way.
type observer struct {
	History
	before History
	s      cluster.Snapshot
	did    Activity
}

// Observe counts what has happened since the last observation. The first counts nothing, since nobody knows when what
// there is came about. The history given is not changed.
func (h History) Observe(s cluster.Snapshot, did Activity) History {
	o := observer{before: h, s: s, did: did, History: History{At: s.Now, Totals: h.Totals.Clone(),
		Claims: map[string]knownClaim{}, Starting: map[string]time.Time{}, Impaired: map[string]bool{},
		Refused: map[string]time.Time{}}}
	o.observeClaims()
	o.observePods()
	o.observeImpaired()
	o.observeRefused()
	o.observeConditions()
	for _, code := range slices.Sorted(maps.Keys(did.Evictions)) {
		o.Totals.Count(podsEvictions, float64(did.Evictions[code]), "code", code)
	}
	for _, reason := range slices.Sorted(maps.Keys(did.PodsDrained)) {
		o.Totals.Count(podsDrained, float64(did.PodsDrained[reason]), "reason", reason)
	}
	o.forgetPools()
	return o.History
}

func (o *observer) first() bool { return o.before.At.IsZero() }

func (o *observer) observeClaims() {
	reasons, moving := commandReasons(o.s.Claims), podsToMove(o.s)
	for _, n := range o.s.StateNodes() {
		if n.Claim == nil {
			continue
		}
		before, known := o.before.Claims[n.Claim.UID]
		now := knownClaimOf(n, before)
		if !o.first() {
			if !known {
				o.countCreated(*n.Claim, reasons)
			}
			o.countSteps(*n.Claim, before, &now, reasons, moving)
		} else {
			now.Disrupted = !now.Deleting.IsZero()
			now.Notice = noticeOf(*n.Claim)
		}
		o.Claims[n.Claim.UID] = now
	}
	for _, uid := range slices.Sorted(maps.Keys(o.before.Claims)) {
		if _, there := o.Claims[uid]; !there {
			o.countGone(o.before.Claims[uid])
		}
	}
}

func knownClaimOf(n cluster.StateNode, before knownClaim) knownClaim {
	c := *n.Claim
	k := knownClaim{Name: c.Name, Pool: c.Pool, CapacityType: cmp.Or(c.Labels[instancetypes.LabelCapacityType],
		before.CapacityType), Zone: cmp.Or(c.Labels[instancetypes.LabelZone], before.Zone), Created: c.Created,
		Registered: before.Registered || c.Is(v1.ConditionRegistered),
		Drained:    before.Drained || c.Is(v1.ConditionDrained), Deleting: c.Deleting, Ending: before.Ending,
		Disrupted: before.Disrupted, Notice: before.Notice, Node: before.Node, NodeDeleting: before.NodeDeleting}
	if ending := c.Condition(v1.ConditionInstanceTerminating); ending.Status == "True" {
		k.Ending = ending.Since
	}
	if n.Node != nil {
		k.Node = n.Node.Created
		if !n.Node.Deleting.IsZero() {
			k.NodeDeleting = n.Node.Deleting
		}
	}
	return k
}

// countCreated counts a NodeClaim that is new, and how long its pods waited for it.
func (o *observer) countCreated(c cluster.Claim, reasons map[string]string) {
	reason := cmp.Or(reasons[c.Annotations[v1.AnnotationReplaces]], "provisioned")
	o.Totals.Count(metrics.ClaimsCreated, 1, "reason", reason, "nodepool", c.Pool, "min_values_relaxed",
		cmp.Or(c.Annotations[v1.AnnotationMinValuesRelaxed], "false"))
	planned := lists.SetOf(c.NominatedPods())
	for _, p := range o.s.Pods {
		if planned[p.Key()] && !p.Virtual {
			o.Totals.Measure(metrics.DecisionTime, c.Created.Sub(p.Created), o.s.Now)
		}
	}
}

// countSteps counts what has happened to a NodeClaim since it was seen before.
func (o *observer) countSteps(c cluster.Claim, before knownClaim, now *knownClaim, reasons map[string]string,
	moving map[string]int) {
	if now.Registered && !before.Registered {
		o.Totals.Count(nodesCreated, 1, "nodepool", now.Pool, "zone", now.Zone)
	}
	if now.Drained && !before.Drained {
		o.Totals.Count(nodesDrained, 1, "nodepool", now.Pool)
	}
	if notice := noticeOf(c); notice != now.Notice {
		now.Notice = notice
		if notice != "" {
			o.Totals.Count(interruptions, 1, "message_type", notice)
		}
	}
	if now.Deleting.IsZero() || now.Disrupted {
		return
	}
	now.Disrupted = true
	reason := o.disruptionReason(c, reasons)
	if reason == "" { // a person deleted it
		return
	}
	labels := []string{"reason", reason, "nodepool", now.Pool, "capacity_type", now.CapacityType,
		"consolidation_policy", o.consolidationPolicy(c.Pool, reason), "termination_mode", terminationMode(c)}
	o.Totals.Count(metrics.ClaimsDisrupt, 1, labels...)
	if n := moving[c.NodeName]; n > 0 {
		o.Totals.Count(podsDisrupted, float64(n), labels...)
	}
}

// consolidationPolicy is the policy of the pool, for a NodeClaim that is consolidated.
func (o *observer) consolidationPolicy(name, reason string) string {
	if reason != "empty" && reason != "underutilized" {
		return ""
	}
	pool, _ := o.s.PoolOf(name)
	return snakePolicy(pool.Disruption.Policy)
}

func (o *observer) disruptionReason(c cluster.Claim, reasons map[string]string) string {
	if reason := o.did.Deleted[c.Name]; reason != "" {
		return reason
	}
	if reason := c.Annotations[v1.AnnotationDeletionReason]; reason != "" {
		return reason
	}
	return reasons[c.Disruption()]
}

// countGone counts a NodeClaim that is there no more.
func (o *observer) countGone(k knownClaim) {
	now := o.s.Now
	o.Totals.Count(metrics.ClaimsEnded, 1, "nodepool", k.Pool, "capacity_type", k.CapacityType, "zone", k.Zone)
	if !k.Deleting.IsZero() {
		o.Totals.Measure(claimTermination, now.Sub(k.Deleting), now, "nodepool", k.Pool)
		o.Totals.Measure("operator_nodeclaim_termination_duration_seconds", now.Sub(k.Deleting), now)
	}
	if !k.Ending.IsZero() {
		o.Totals.Measure(instanceTermination, now.Sub(k.Ending), now, "nodepool", k.Pool)
	}
	if !k.Registered {
		return
	}
	o.Totals.Count(nodesTerminated, 1, "nodepool", k.Pool, "zone", k.Zone)
	if !k.Node.IsZero() {
		o.Totals.Measure(nodeLifetime, now.Sub(k.Node), now, "nodepool", k.Pool)
	}
	if !k.NodeDeleting.IsZero() {
		o.Totals.Measure(nodeTermination, now.Sub(k.NodeDeleting), now, "nodepool", k.Pool)
		o.Totals.Measure("operator_node_termination_duration_seconds", now.Sub(k.NodeDeleting), now)
	}
}

// observePods measures pods that became ready or were bound since the last observation.
func (o *observer) observePods() {
	planned := plannedSince(o.s.Claims)
	for _, p := range o.s.Pods {
		if !p.Virtual && p.Owner != cluster.OwnerNode {
			o.observePod(p, planned[p.Key()])
		}
	}
}

// observePod measures one pod, for which a NodeClaim was made at the time planned, if at all.
func (o *observer) observePod(p cluster.Pod, planned time.Time) {
	since, starting := o.before.Starting[p.UID]
	if since.IsZero() {
		since = planned
	}
	fresh := starting || !o.first() && p.Created.After(o.before.At)
	if fresh && p.Bound.After(o.before.At) {
		o.measurePod(podsBound, p.Created, p.Bound, "dynamic_resources", "false")
		o.measurePod(podsProvisioningBound, since, p.Bound, "dynamic_resources", "false")
	}
	switch {
	case fresh && p.Ready:
		o.measurePod(podsStartup, p.Created, p.ReadySince)
		o.measurePod(podsProvisioningStartup, since, p.ReadySince)
	case !p.Ready && !p.Terminal() && (starting || p.Phase == "Pending") && len(o.Starting) < mostStarting:
		o.Starting[p.UID] = since
	}
}

// measurePod measures from one time to the other, unless the first is none.
func (o *observer) measurePod(family string, from, to time.Time, labels ...string) {
	if !from.IsZero() {
		o.Totals.Measure(family, to.Sub(from), o.s.Now, labels...)
	}
}

// plannedSince returns the times when NodeClaims were made for pods, by namespace/name.
func plannedSince(claims []cluster.Claim) map[string]time.Time {
	out := map[string]time.Time{}
	for _, c := range claims {
		for _, key := range c.NominatedPods() {
			out[key] = c.Created
		}
	}
	return out
}

func (o *observer) observeImpaired() {
	for _, i := range o.s.Impaired {
		category := "instance_status"
		if i.System {
			category = "system_status"
		}
		key := category + " " + i.Instance
		if !o.first() && !o.before.Impaired[key] {
			o.Totals.Count(unhealthyInstances, 1, "category", category)
		}
		o.Impaired[key] = true
	}
}

// observeRefused counts offerings that were marked as unavailable, or for longer than before, since the last
// observation. A snapshot without a catalog says nothing about them.
func (o *observer) observeRefused() {
	if len(o.s.Catalog.Types) == 0 {
		o.Refused = o.before.Refused
		return
	}
	for _, u := range o.s.Unavailable {
		reason := refusalCode(u.Why)
		if u.Type == "" || u.Zone == "" || !isLaunchFailure(reason) {
			continue
		}
		key := u.CapacityType + " " + u.Type + " " + u.Zone + " " + u.Scope
		if !o.first() && u.Until.After(o.before.Refused[key]) {
			o.Totals.Count(launchFailures, 1, "zone", u.Zone, "zone_id", o.s.Catalog.Zones[u.Zone], "capacity_type",
				u.CapacityType, "reason", reason)
		}
		o.Refused[key] = u.Until
	}
}

// forgetPools drops what was counted of NodePools that are gone with all their NodeClaims.
func (o *observer) forgetPools() {
	there := lists.Set(o.s.Pools, func(p cluster.Pool) string { return p.Name })
	for _, c := range o.s.Claims {
		there[c.Pool] = true
	}
	o.Totals.keepPools(there)
}

// podsToMove counts by node the pods that will need another one when theirs goes.
func podsToMove(s cluster.Snapshot) map[string]int {
	out := map[string]int{}
	for _, p := range s.Pods {
		if p.NodeName != "" && p.Reschedulable() {
			out[p.NodeName]++
		}
	}
	return out
}

func terminationMode(c cluster.Claim) string {
	switch {
	case c.TerminationGrace == nil:
		return "graceful"
	case *c.TerminationGrace > 0:
		return "eventual"
	}
	return "forceful"
}
