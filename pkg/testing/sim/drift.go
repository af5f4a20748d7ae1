package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	awsv1 "joiner/pkg/api/aws/v1"
	v1 "joiner/pkg/api/v1"
	"joiner/pkg/disruption"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/requirements"
)

// Drift is acted on in some runs: users edit templates, requirements and classes, there are new images, and disrupt
// replaces the nodes within budgets.

// Times of runs with drift. A drifted node is proposed, replaced, and drained, one after the other; one whose pods had
// no room for ten minutes is left alone for ten more.
const (
	driftStorm = 15 * time.Minute
	driftRest  = 55 * time.Minute
)

// drawDrift makes nodes drift in half of the runs about disrupt and in a few others.
func (w *world) drawDrift() {
	share := 0.08
	switch w.plan.focus {
	case "", "refresh": // a day, and a story of its own
		return
	case "disrupt":
		share = 0.5
	case "rebalance": // which is in vain now and then, and must not keep a node for ever
		share = 0.3
	}
	if w.plan.drifts = w.drawChance(share); w.plan.drifts {
		w.plan.budget = int(w.drawInt(1, 2))
		w.plan.storm = max(w.plan.storm, driftStorm)
	}
}

// causeDrift is something after which nodes are not what their pools ask for.
func (w *world) causeDrift() {
	p := &w.pools[w.rng.IntN(len(w.pools))]
	switch w.rng.IntN(4) {
	case 0:
		w.newImage()
	case 1:
		w.editClass(w.objects["default"])
	case 2:
		p.Hash += "1"
		w.addTrace("the template of pool %s is changed", p.Name)
	default:
		if _, limits := p.Requirements.Get(labelCapacity); limits {
			p.Requirements = p.Requirements.Without(labelCapacity)
		} else {
			p.Requirements = p.Requirements.And(requirements.Of(labelCapacity, instancetypes.OnDemand))
		}
		w.addTrace("pool %s requires %s", p.Name, p.Requirements)
	}
}

// newImage is one that look-ups show a little later.
func (w *world) newImage() {
	w.account.before, w.account.image, w.account.changed = w.account.image, w.account.image+1, time.Now()
	w.addTrace("there is a new image, ami-%d", w.account.image)
}

// driftReason says what of a claim's node is not what its pool and class ask for now, or nothing.
func (w *world) driftReason(c *claim) string {
	pool, _ := w.poolOf(c.Pool)
	k, limits := pool.Requirements.Get(labelCapacity)
	switch {
	case c.ImageID != "" && c.ImageID != fmt.Sprintf("ami-%d", w.account.image):
		return "image " + c.ImageID
	case c.Annotations[awsv1.AnnotationHash] != w.objects["default"].Annotations[awsv1.AnnotationHash]:
		return "class"
	case c.Annotations[v1.AnnotationNodePoolHash] != pool.Hash:
		return "template"
	case limits && !slices.Contains(k.Values, c.Labels[labelCapacity]):
		return c.Labels[labelCapacity]
	}
	return ""
}

// calmDrift lets all drift end: budgets allow some nodes at a time, and limits are lifted, for replacements come first.
func (w *world) calmDrift() {
	w.plan.budget, w.plan.budgetSince = 3, time.Now()
	for i := range w.pools {
		w.pools[i].Limited = nil
		w.pools[i].Disruption.Budgets = []cluster.NodeBudget{{Nodes: strconv.Itoa(w.plan.budget), Every: true}}
	}
}

// driftProblems are the nodes that have drifted and are still there.
func (w *world) driftProblems() (bad []string) {
	if !w.plan.drifts {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		if why := w.driftReason(w.claims[name]); why != "" {
			bad = append(bad, fmt.Sprintf("claim %s has drifted (%s), and is not replaced", name, why))
		}
	}
	return bad
}

// markOf is the disruption that a claim takes part in.
func markOf(c *claim) (m disruption.CommandMark, marked bool) {
	err := json.Unmarshal([]byte(c.Annotations[disruption.AnnotationMark]), &m)
	return m, err == nil
}

func goesForDrift(c *claim) bool {
	m, marked := markOf(c)
	return marked && m.Reason == v1.DisruptionDrifted
}

// checkReplaced looks at a claim that disrupt deletes: all that was made in its stead is ready.
func (w *world) checkReplaced(c *claim) {
	m, marked := markOf(c)
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		r := w.claims[name]
		if marked && r.Annotations[disruption.AnnotationReplaces] == m.ID && r.Deleting.IsZero() && !w.inService(r) &&
			!w.standsBy(r) {
			w.addViolation("removal before replacement",
				"claim %s is condemned while %s, which replaces it, is not ready", c.Name, name)
		}
	}
}

// standsBy reports whether only its hold keeps the claim's node from being initialized.
func (w *world) standsBy(c *claim) bool {
	n := w.nodeOf(c)
	return n != nil && cluster.StateNode{Node: &n.Node, Claim: &c.Claim}.ReadyForNominated()
}
