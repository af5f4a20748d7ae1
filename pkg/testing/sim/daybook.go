package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/disruption"
	"joiner/pkg/model/instancetypes"
	decided "joiner/pkg/model/plan"
)

// disruptionReport keeps what disruption moved in a day, to see whether it takes back what it did.
type disruptionReport struct {
	moves    []*begunMove
	again    int       // nodes launched for pods although their kind was given up lately and no app has grown since
	deployed time.Time // last
}

// begunMove is a consolidation that was begun.
type begunMove struct {
	id    string
	at    time.Time
	sizes map[*app]int     // how many pods apps had then
	net   map[nodeKind]int // nodes launched, less those removed
	again map[nodeKind]int // nodes launched for pods, of those removed
}

// nodeKind is what nodes have in common that stand for each other.
type nodeKind struct{ pool, instanceType, capacityType, zone string }

func (k nodeKind) String() string {
	return fmt.Sprintf("%s %s in %s of pool %s", k.capacityType, k.instanceType, k.zone, k.pool)
}

// lately is how far back the daybook looks.
const lately = time.Hour

// leastPayback is what any move needs to pay: the time in which old and new nodes ran side by side.
const leastPayback = 2 * time.Minute

// appSizes is how many pods the apps are to have.
func (w *world) appSizes() map[*app]int {
	out := map[*app]int{}
	for _, a := range w.apps {
		if !a.daemon {
			out[a] = a.replicas
		}
	}
	return out
}

// needsMoreNodes reports whether there is a reason for another node since the move: an app has more pods than then, or
// one was deployed anew, which needs room for new pods beside those that end.
func (w *world) needsMoreNodes(since *begunMove) bool {
	for a, n := range w.appSizes() {
		if n > since.sizes[a] {
			return true
		}
	}
	return w.book.deployed.After(since.at)
}

// hasChanged reports whether anything is another way than at the time of the move.
func (w *world) hasChanged(since *begunMove) bool {
	return w.needsMoreNodes(since) || !maps.Equal(w.appSizes(), since.sizes)
}

// checkMove looks at a claim that disruption marks, or from which it takes the mark: a node that replaced others, and
// has pods to move, has had its payback time.
func (w *world) checkMove(c *claim, set map[string]string) {
	text, ok := set[disruption.AnnotationMark]
	var m disruption.CommandMark
	switch {
	case w.book == nil || !ok:
		return
	case text == "" && json.Unmarshal([]byte(c.Annotations[disruption.AnnotationMark]), &m) == nil: // taken back
		w.book.moves = slices.DeleteFunc(w.book.moves, func(x *begunMove) bool { return x.id == m.ID })
		return
	case json.Unmarshal([]byte(text), &m) != nil || m.Reason != v1.DisruptionUnderutilized:
		return
	}
	if c.Annotations[disruption.AnnotationReplaces] != "" {
		until, err := time.Parse(time.RFC3339, c.Annotations[v1.AnnotationDoNotConsolidateBefore])
		if err != nil || time.Now().Before(until) || time.Since(c.Created) < leastPayback {
			w.addViolation("moved within the payback time",
				"claim %s, which replaced others %s ago, is to go: it has paid at %q", c.Name, time.Since(c.Created),
				c.Annotations[v1.AnnotationDoNotConsolidateBefore])
		}
	}
	at := w.book.moveOf(m.ID)
	if at == nil {
		w.checkCircle()
		at = &begunMove{id: m.ID, at: time.Now(), sizes: w.appSizes(), net: map[nodeKind]int{},
			again: map[nodeKind]int{}}
		w.book.moves = append(w.book.moves, at)
	}
	at.net[nodeKind{c.Pool, c.Labels[instancetypes.LabelType], c.Labels[instancetypes.LabelCapacityType],
		c.Labels[instancetypes.LabelZone]}]--
}

// checkCircle looks at the last moves: while all apps are as they were, no number of them within an hour may leave the
// nodes as they were, nor one of them replace a node by its like.
func (w *world) checkCircle() {
	sum := map[nodeKind]int{}
	for i, m := range slices.Backward(w.book.moves) {
		if w.hasChanged(m) || time.Since(m.at) > lately {
			return
		}
		for k, n := range m.net {
			if sum[k] += n; sum[k] == 0 {
				delete(sum, k)
			}
		}
		if len(sum) == 0 {
			w.addViolation("to and fro", "the last %d moves, since %s ago, leave the nodes as they were",
				len(w.book.moves)-i, time.Since(m.at))
		}
	}
}

func (b *disruptionReport) moveOf(id string) *begunMove {
	for _, m := range b.moves {
		if m.id == id {
			return m
		}
	}
	return nil
}

// checkAgain looks at a claim that is made. That a kind is launched for pods after one was given up within the last
// hour, although no app has grown since, is counted, once for each that was given up: kube-scheduler may put moved pods
// so that one of them finds no room, and that is a loss as long as it is rare.
func (w *world) checkAgain(c *claim, l decided.Launch) {
	if w.book == nil {
		return
	}
	k := nodeKind{c.Pool, l.Choice.Type, l.Choice.CapacityType, l.Choice.Zone}
	if now := w.book.moveOf(c.Annotations[disruption.AnnotationReplaces]); now != nil {
		now.net[k]++
		return
	}
	i := slices.IndexFunc(w.book.moves, func(m *begunMove) bool {
		return time.Since(m.at) <= lately && m.net[k]+m.again[k] < 0 && !w.needsMoreNodes(m)
	})
	if i >= 0 {
		w.book.again++
		w.book.moves[i].again[k]++
		w.addTrace("a %s is launched for %v, one of which disruption gave up lately", k, l.Pods)
	}
}
