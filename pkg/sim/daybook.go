package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/catalog"
	"joiner/pkg/disrupt"
	decided "joiner/pkg/plan"
)

// daybook keeps what disruption moved in a day, to see whether it takes back what it did.
type daybook struct {
	moves    []*move
	again    int       // nodes launched for pods although their kind was given up lately and no app has grown since
	deployed time.Time // last
}

// move is a consolidation that was begun.
type move struct {
	id    string
	at    time.Time
	sizes map[*app]int    // how many pods apps had then
	net   map[variety]int // nodes launched, less those removed
	again map[variety]int // nodes launched for pods, of those removed
}

// variety is what nodes have in common that stand for each other.
type variety struct{ pool, instanceType, capacityType, zone string }

func (k variety) String() string {
	return fmt.Sprintf("%s %s in %s of pool %s", k.capacityType, k.instanceType, k.zone, k.pool)
}

// lately is how far back the daybook looks.
const lately = time.Hour

// leastPayback is what any move needs to pay: the time in which old and new nodes ran side by side.
const leastPayback = 2 * time.Minute

// sizes is how many pods the apps are to have.
func (w *world) sizes() map[*app]int {
	out := map[*app]int{}
	for _, a := range w.apps {
		if !a.daemon {
			out[a] = a.replicas
		}
	}
	return out
}

// grown reports whether there is a reason for another node since the move: an app has more pods than then, or one was deployed anew, which
// needs room for new pods beside those that end.
func (w *world) grown(since *move) bool {
	for a, n := range w.sizes() {
		if n > since.sizes[a] {
			return true
		}
	}
	return w.book.deployed.After(since.at)
}

// differs reports whether anything is another way than at the time of the move.
func (w *world) differs(since *move) bool {
	return w.grown(since) || !maps.Equal(w.sizes(), since.sizes)
}

// checkMove looks at a claim that disruption marks, or from which it takes the mark: a node that replaced others, and has pods to move, has
// had its payback time.
func (w *world) checkMove(c *claim, set map[string]string) {
	text, ok := set[disrupt.AnnotationMark]
	var m disrupt.Mark
	switch {
	case w.book == nil || !ok:
		return
	case text == "" && json.Unmarshal([]byte(c.Annotations[disrupt.AnnotationMark]), &m) == nil: // taken back
		w.book.moves = slices.DeleteFunc(w.book.moves, func(x *move) bool { return x.id == m.ID })
		return
	case json.Unmarshal([]byte(text), &m) != nil || m.Reason != v1.DisruptionUnderutilized:
		return
	}
	if c.Annotations[disrupt.AnnotationReplaces] != "" {
		until, err := time.Parse(time.RFC3339, c.Annotations[disrupt.AnnotationSettled])
		if err != nil || time.Now().Before(until) || time.Since(c.Created) < leastPayback {
			w.violate("moved within the payback time", "claim %s, which replaced others %s ago, is to go: it has paid at %q", c.Name, time.Since(c.Created),
				c.Annotations[disrupt.AnnotationSettled])
		}
	}
	at := w.book.of(m.ID)
	if at == nil {
		w.checkCircle()
		at = &move{id: m.ID, at: time.Now(), sizes: w.sizes(), net: map[variety]int{}, again: map[variety]int{}}
		w.book.moves = append(w.book.moves, at)
	}
	at.net[variety{c.Pool, c.Labels[catalog.LabelType], c.Labels[catalog.LabelCapacityType], c.Labels[catalog.LabelZone]}]--
}

// checkCircle looks at the last moves: while all apps are as they were, no number of them within an hour may leave the nodes as
// they were, nor one of them replace a node by its like.
func (w *world) checkCircle() {
	sum := map[variety]int{}
	for i, m := range slices.Backward(w.book.moves) {
		if w.differs(m) || time.Since(m.at) > lately {
			return
		}
		for k, n := range m.net {
			if sum[k] += n; sum[k] == 0 {
				delete(sum, k)
			}
		}
		if len(sum) == 0 {
			w.violate("to and fro", "the last %d moves, since %s ago, leave the nodes as they were", len(w.book.moves)-i, time.Since(m.at))
		}
	}
}

func (b *daybook) of(id string) *move {
	for _, m := range b.moves {
		if m.id == id {
			return m
		}
	}
	return nil
}

// checkAgain looks at a claim that is made. That a kind is launched for pods after one was given up within the last hour, although no app
// has grown since, is counted, once for each that was given up: kube-scheduler may put moved pods so that one of them finds no room, and that is a loss as long as it is rare.
func (w *world) checkAgain(c *claim, l decided.Launch) {
	if w.book == nil {
		return
	}
	k := variety{c.Pool, l.Choice.Type, l.Choice.CapacityType, l.Choice.Zone}
	if now := w.book.of(c.Annotations[disrupt.AnnotationReplaces]); now != nil {
		now.net[k]++
		return
	}
	i := slices.IndexFunc(w.book.moves, func(m *move) bool { return time.Since(m.at) <= lately && m.net[k]+m.again[k] < 0 && !w.grown(m) })
	if i >= 0 {
		w.book.again++
		w.book.moves[i].again[k]++
		w.tell("a %s is launched for %v, one of which disruption gave up lately", k, l.Pods)
	}
}
