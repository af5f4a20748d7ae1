package disruption

import (
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"

	v1 "joiner.sh/pkg/api/v1"
)

// pass plays one pass and prints it.
func (w *world) pass(d *datadriven.TestData) string {
	p := w.next()
	if d.HasArg("hold") {
		w.held = p
	} else {
		w.act(p)
	}
	if !d.HasArg("all") {
		p.NotDisrupted = nil
	}
	out := p.Lines()
	if d.HasArg("asks") {
		out = append(out, asks(append(p.Proposed, p.Begin...))...)
	}
	if d.HasArg("starting") && len(p.Starting) > 0 {
		out = append(out, "starting: "+strings.Join(p.Starting, " "))
	}
	if e := p.Eligible; d.HasArg("eligible") {
		out = append(out, fmt.Sprintf("eligible: %d empty, %d drifted, %d underutilized", len(e[v1.DisruptionEmpty]), len(e[v1.DisruptionDrifted]), len(e[v1.DisruptionUnderutilized])))
		for _, c := range p.BudgetsExhausted {
			out = append(out, fmt.Sprintf("closed: pool %s for %v", c.Pool, c.Reasons))
		}
	}
	return strings.Join(out, "\n") + "\n"
}

// asks is what the replacements ask EC2 for.
func asks(all []Command) (out []string) {
	for _, c := range all {
		for _, l := range c.Launches {
			capacity, _ := l.Requirements.Get(v1.LabelCapacityType)
			zones, _ := l.Requirements.Get(corev1.LabelTopologyZone)
			line := fmt.Sprintf("asks for %v %v in %v", capacity.Values, l.Types, zones.Values)
			if r := l.Annotations[v1.AnnotationNodeRevision]; r != "" {
				line += " of revision " + r
			}
			out = append(out, line)
		}
	}
	return out
}

// stillness is what the claims say about how quiet their nodes are.
func (w *world) stillness() string {
	var b strings.Builder
	for _, c := range w.Snapshot.Claims {
		fmt.Fprintf(&b, "%s consolidatable %t", c.Name, c.Is(v1.ConditionConsolidatable))
		if !c.LastPodEvent.IsZero() {
			fmt.Fprintf(&b, ", last pod event %s", c.LastPodEvent.Format(time.TimeOnly))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
