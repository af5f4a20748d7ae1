package sim

import (
	"maps"
	"slices"
	"time"

	v1 "joiner/pkg/api/v1"
)

// guardNode keeps a node from being disrupted by choice for so long, as a user does who annotates it.
func (w *world) guardNode(n *node, d time.Duration) {
	if w.nodes[n.Name] != n {
		return
	}
	w.addTrace("somebody protects node %s for %s", n.Name, d)
	if n.Annotations[v1.AnnotationDoNotDisrupt] == "" {
		n.guarded = time.Now()
	}
	n.Annotations = mergeAnnotations(n.Annotations, map[string]string{v1.AnnotationDoNotDisrupt: "true"})
	until := time.Now().Add(d)
	n.guardEnds = laterOf(until, n.guardEnds)
	w.notifyChange(aNode, nil)
	w.runAfter(d, func() {
		if !n.guardEnds.After(until) {
			w.unguardNode(n)
		}
	})
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// unguardNode takes the annotation off.
func (w *world) unguardNode(n *node) {
	if w.nodes[n.Name] != n || n.Annotations[v1.AnnotationDoNotDisrupt] == "" {
		return
	}
	w.addTrace("node %s is not protected any more", n.Name)
	n.Annotations = mergeAnnotations(n.Annotations, nil)
	delete(n.Annotations, v1.AnnotationDoNotDisrupt)
	w.notifyChange(aNode, nil)
}

// guardRecommended protects a node that is to be left on a recommendation until it is too late for that, so that the
// recommendation is in vain. It has drifted by then as likely as not, and must go in the end.
func (w *world) guardRecommended(m *machine) {
	if old := time.Since(m.Launched) > 15*time.Minute; w.plan.drifts && old && m.node != nil && w.drawChance(0.7) {
		w.guardNode(m.node, w.drawDuration(15*time.Minute+30*time.Second, 17*time.Minute))
	}
}

// calmGuards takes all protection off that would go on for ever; that of recommendations ends in time.
func (w *world) calmGuards() {
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		if !w.plan.drifts {
			w.unguardNode(w.nodes[name])
		}
	}
}

// checkGuarded looks at a node that goes by choice: nobody protects it.
func (w *world) checkGuarded(by *invocation, n *node) {
	if n.Annotations[v1.AnnotationDoNotDisrupt] == "true" && time.Since(n.guarded) > late {
		w.addViolation("protected node disrupted", "%s takes node %s, which has been protected for %s", by, n.Name,
			time.Since(n.guarded))
	}
}
