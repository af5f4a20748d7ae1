package sim

import (
	"maps"
	"slices"
	"strconv"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/objects"
)

// calmDrift lets all drift end: budgets allow some nodes at a time, and limits are lifted, for replacements come first.
func (w *world) calmDrift() {
	w.plan.budget, w.plan.budgetSince = 3, time.Now()
	for i := range w.api.pools {
		w.api.pools[i].Limited = nil
		w.api.pools[i].Disruption.Budgets = []cluster.NodeBudget{{Nodes: strconv.Itoa(w.plan.budget), Every: true}}
	}
}

// calmStatic ends the drift of nodes that would be replaced at rest only because they drifted before.
func (w *world) calmStatic() {
	p := w.api.staticPool()
	if p == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(w.api.claims)) {
		if c := w.api.claims[name]; c.Pool == p.Name && c.Annotations[v1.AnnotationNodePoolHash] != p.Hash {
			c.Annotations = objects.Merge(c.Annotations, map[string]string{v1.AnnotationNodePoolHash: p.Hash})
			w.api.writeClaim(c, nil)
		}
	}
}

// endTrouble ends all trouble: no fault comes any more, EC2 sells everything, and what would go on for ever is undone.
func (w *world) endTrouble() {
	w.addTrace("-- calm --")
	w.calmed = time.Now()
	w.trouble = false
	if len(w.ceilings.list) > 0 { // pods would wait for ever
		w.useCeiling(cluster.Ceiling{})
	}
	w.plan.lost, w.plan.double, w.plan.slow = 0, 0, 0
	w.ec2.scarce = map[instancetypes.OfferingKey]bool{}
	for i := range w.api.pools {
		w.api.pools[i].ExpireAfter, w.api.pools[i].Disruption.Never = 0, true
		if w.account.edited {
			// or nodes that drifted go for long
			w.api.pools[i].Disruption.Budgets = []cluster.NodeBudget{{Nodes: "0", Every: true}}
		}
	}
	w.dropLate()
	w.users.calmGuards()
	if w.plan.drifts {
		w.calmDrift()
	} else {
		w.calmStatic()
	}
	for _, a := range w.workloads.apps {
		if a.budget != nil && (w.api.limitReached() || a.replicas == 0 || a.bare || a.volumes > 0 &&
			len(a.pattern.Spread) > 0) {
			a.budget.minAvailable = 0 // some of its pods may have no room, ever
		} else if a.budget != nil {
			a.budget.minAvailable = min(a.budget.minAvailable, a.replicas-1)
		}
		a.pattern.DoNotDisrupt = ""
	}
	for _, key := range slices.Sorted(maps.Keys(w.api.pods)) {
		w.api.pods[key].DoNotDisrupt = ""
	}
}

// dropLate takes back what would happen at rest only because it began before: claims that expire, and nodes that are to
// be left once a limit or a budget has room.
func (w *world) dropLate() {
	for _, name := range slices.Sorted(maps.Keys(w.api.claims)) {
		c := w.api.claims[name]
		if c.ExpireAfter > 0 {
			w.api.deleteClaim(c, nil)
		}
		if !w.plan.drifts && c.Annotations[v1.AnnotationReplaceRequested] != "" &&
			(w.api.limitReached() || time.Since(w.calmed) > restFor/2) {
			if m := w.ec2.instanceOf(c); m != nil {
				w.ec2.callOff(m)
			}
			if interruption.LeaveOf(c.Claim).Cause == interruption.Rebalance { // which it is soon enough without
				c.Annotations = objects.Merge(c.Annotations, nil)
				delete(c.Annotations, v1.AnnotationReplaceRequested)
				w.api.writeClaim(c, nil)
			}
		}
	}
}
