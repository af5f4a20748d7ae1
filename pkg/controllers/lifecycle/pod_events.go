package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
)

// Limits of what one pass tells of pods. Events are for people to read: of more pods their nodes tell.
const (
	maxPodEvents   = 50
	parallelEvents = 8
)

// podEvents collects the events of a pass about pods that it took away, or could not. The zero value is ready.
type podEvents struct {
	mu  sync.Mutex
	all []podEvent
}

type podEvent struct {
	cluster.Event
	node string
}

func (p *podEvents) recordOnce(node string, e cluster.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, podEvent{e, node})
}

// record writes them: each on its pod or, where they are many, one on each node for all that happened to its pods for
// the same reason.
func (p *podEvents) record(ctx context.Context, l *Controller, objects *objectIndex) {
	controllers.ForEach(parallelEvents, p.events(objects), func(_ int, e cluster.Event) {
		_ = l.Shield().Do("an event", func() error { l.RecordOrLog(ctx, e); return nil }) // logged
	})
}

func (p *podEvents) events(objects *objectIndex) (out []cluster.Event) {
	if len(p.all) <= maxPodEvents {
		for _, e := range p.all {
			out = append(out, e.Event)
		}
		return out
	}
	compare := func(a, b podEvent) int {
		return cmp.Or(strings.Compare(a.node, b.node), strings.Compare(a.Reason, b.Reason))
	}
	slices.SortFunc(p.all, func(a, b podEvent) int {
		return cmp.Or(compare(a, b), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for rest := p.all; len(rest) > 0; {
		first := rest[0]
		n := slices.IndexFunc(rest, func(e podEvent) bool { return compare(e, first) != 0 })
		if n < 0 {
			n = len(rest)
		}
		pods := lists.Of(rest[:n], func(e podEvent) string { return e.Namespace + "/" + e.Name })
		rest = rest[n:]
		if node, known := objects.nodes[first.node]; known {
			out = append(out, cluster.Event{Kind: "Node", Name: node.Name, UID: node.UID, Warning: first.Warning,
				Reason: first.Reason, Message: fmt.Sprintf("%d pods: %s: %s", n, plan.NamePods(pods), first.Message)})
		}
	}
	return out
}
