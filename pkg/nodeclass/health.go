package nodeclass

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

// The health of registrations.
const (
	remembered = 4 // outcomes
	tooMany    = 2 // failures among them
)

// RecordRegistrations adds outcomes to those in the pool's annotation and sets the condition NodeRegistrationHealthy
// accordingly: True after a success if few enough failed lately, False after a failure if too many did. An outcome of a
// claim that is remembered is no news. It changes the status of the pool given and returns what the annotation should
// be.
func RecordRegistrations(p *v1.NodePool, outcomes []cluster.Registration, now time.Time) (annotation string,
	news bool) {
	head := fmt.Sprintf("%d/%d", p.Generation, p.Status.NodeClassObservedGeneration)
	old, rest, _ := strings.Cut(p.Annotations[v1.AnnotationRegistrationHistory], " ")
	var ring []string
	if old == head {
		ring = strings.Fields(rest)
	}
	for _, o := range outcomes {
		if slices.ContainsFunc(ring, func(e string) bool { return strings.HasSuffix(e, ":"+o.ClaimUID) }) {
			continue
		}
		word := "failed"
		if o.OK {
			word = "ok"
		}
		ring = append(ring, word+":"+o.ClaimUID)
		ring = ring[max(len(ring)-remembered, 0):]
		news = true
		setRegistrationHealth(p, o, ring, now)
	}
	return strings.Join(append([]string{head}, ring...), " "), news
}

func setRegistrationHealth(p *v1.NodePool, o cluster.Registration, ring []string, now time.Time) {
	failed := lists.Count(ring, func(e string) bool { return strings.HasPrefix(e, "failed:") })
	switch {
	case o.OK && failed < tooMany:
		p.StatusConditions().SetTrue(v1.ConditionNodeRegistrationHealthy, now)
	case !o.OK && failed >= tooMany:
		p.StatusConditions().SetFalse(v1.ConditionNodeRegistrationHealthy, o.Reason,
			fmt.Sprintf("%d of the last %d nodes did not join the cluster, the last one because: %s", failed,
				len(ring), o.Message), now)
	}
}
