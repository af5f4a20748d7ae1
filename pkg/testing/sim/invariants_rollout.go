package sim

import (
	"fmt"
	"maps"
	"slices"

	"joiner.sh/pkg/api/joiner/v1alpha1"
	v1 "joiner.sh/pkg/api/v1"
)

// mostTaken caps the nodes that EC2 may take before they prove anything, for which others may be tried.
const mostTaken = 3

// checkTrialNodes: no more nodes ever run a new image than the steps reached allow, and EC2 takes away, until it is
// trusted; anew when people resume it.
func checkTrialNodes(w *world, s instanceStarted) []string {
	t := w.trial
	if t == nil || t.image == "" || s.machine.ImageID != t.image {
		return nil
	}
	taken := 0
	for id := range t.ran {
		m := w.ec2.machines[id]
		if c := w.api.byUID[m.owner]; m.noticed && (c == nil || !c.Is(v1.ConditionInitialized)) {
			taken++
		}
	}
	if t.ran[s.machine.ID] = true; t.trusted || len(t.ran) <= t.most+min(taken, mostTaken) {
		return nil
	}
	return broken("%d nodes run image %s with %s, the steps reached allow %d, and EC2 took %d", len(t.ran), t.image,
		s.machine.ID, t.most, taken)
}

// checkTrialFailed: nothing is made with an image that failed.
func checkTrialFailed(w *world, s claimCreated) []string {
	t := w.trial
	if t == nil || !t.failed || t.revisionImage(s.launch.Annotations[v1.AnnotationNodeRevision]) != t.image {
		return nil
	}
	return broken("claim %s is made with the image that failed", s.claim.Name)
}

// checkTrialStep: a step is taken, and an image is trusted, only with what CloudWatch said of the alarms in the same
// pass, and not while one fires.
func checkTrialStep(w *world, s rolloutWritten) []string {
	t := w.trial
	if t == nil || t.image == "" || s.alarm == "OK" {
		return nil
	}
	st := t.stored.Status
	switch isIt := t.revisionImage(st.Revision) == t.image; {
	case t.revisionImage(st.LastGoodRevision) == t.image && !t.trusted:
		return broken("the image is trusted while the alarm was read as %q", s.alarm)
	case isIt && !t.anew && int(st.Step) > t.step && !t.trusted && !t.failed:
		return broken("step %d is reached while the alarm was read as %q", st.Step, s.alarm)
	}
	return nil
}

// movesProblems: in a cluster in which nothing else moves pods, an image that is rolled back has none evicted more than
// twice, and none more than once that never ran on it.
func movesProblems(t *rolloutTrial) (bad []string) {
	if !t.quiet || !t.failed || t.stored.Spec.OnFailure != v1alpha1.Rollback {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(t.moved)) {
		switch n := t.moved[key]; {
		case n > 2:
			bad = append(bad, fmt.Sprintf("pod %s was evicted %d times", key, n))
		case n > 1 && !t.tried[key]:
			bad = append(bad, fmt.Sprintf("pod %s, which never ran on the image, was evicted %d times", key, n))
		}
	}
	return bad
}

// noteMove counts an eviction.
func (t *rolloutTrial) noteMove(p *pod, from *node) {
	if t == nil || t.image == "" || p.app.daemon {
		return
	}
	t.moved[p.Key()]++
	if from != nil && from.machine != nil && from.machine.ImageID == t.image {
		t.tried[p.Key()] = true
	}
}
