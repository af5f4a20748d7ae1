package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/instancetypes"
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

// nodeKind holds what nodes have in common that stand for each other.
type nodeKind struct{ pool, instanceType, capacityType, zone string }

func (k nodeKind) String() string {
	return fmt.Sprintf("%s %s in %s of pool %s", k.capacityType, k.instanceType, k.zone, k.pool)
}

// lately is the time back to which the invariants of a day look.
const lately = time.Hour

// leastPayback is the time that any move needs to pay: the time in which old and new nodes ran side by side.
const leastPayback = 2 * time.Minute

// needsMoreNodes reports whether there is a reason for another node since the move: an app has more pods than then, or
// one was deployed anew, which needs room for new pods beside those that end.
func needsMoreNodes(w *world, since *begunMove) bool {
	for a, n := range w.workloads.appSizes() {
		if n > since.sizes[a] {
			return true
		}
	}
	return w.book.deployed.After(since.at)
}

// hasChanged reports whether anything is another way than at the time of the move.
func hasChanged(w *world, since *begunMove) bool {
	return needsMoreNodes(w, since) || !maps.Equal(w.workloads.appSizes(), since.sizes)
}

// begunConsolidation is the consolidation that disruption marks the claim for. It is false for any other step, and
// where no report is kept.
func begunConsolidation(w *world, s claimAnnotated) (m disruption.CommandMark, ok bool) {
	text, ok := s.set[disruption.AnnotationMark]
	if w.book == nil || !ok {
		return m, false
	}
	err := json.Unmarshal([]byte(text), &m)
	return m, err == nil && m.Reason == v1.DisruptionUnderutilized
}

// checkPayback: a node that replaced others, and has pods to move, has had its payback time before it goes.
func checkPayback(w *world, s claimAnnotated) []string {
	c := s.claim
	if _, ok := begunConsolidation(w, s); !ok || c.Annotations[disruption.AnnotationReplaces] == "" {
		return nil
	}
	until, err := time.Parse(time.RFC3339, c.Annotations[v1.AnnotationDoNotConsolidateBefore])
	if err == nil && !time.Now().Before(until) && time.Since(c.Created) >= leastPayback {
		return nil
	}
	return broken("claim %s, which replaced others %s ago, is to go: it has paid at %q", c.Name, time.Since(c.Created),
		c.Annotations[v1.AnnotationDoNotConsolidateBefore])
}

// checkCircle: while all apps are as they were, no number of moves within an hour may leave the nodes as they were, nor
// one of them replace a node by its like.
func checkCircle(w *world, s claimAnnotated) (bad []string) {
	m, ok := begunConsolidation(w, s)
	if !ok || w.book.moveOf(m.ID) != nil {
		return nil
	}
	sum := map[nodeKind]int{}
	for i, m := range slices.Backward(w.book.moves) {
		if hasChanged(w, m) || time.Since(m.at) > lately {
			return bad
		}
		for k, n := range m.net {
			if sum[k] += n; sum[k] == 0 {
				delete(sum, k)
			}
		}
		if len(sum) == 0 {
			bad = append(bad, fmt.Sprintf("the last %d moves, since %s ago, leave the nodes as they were",
				len(w.book.moves)-i, time.Since(m.at)))
		}
	}
	return bad
}

// addMark notes a claim that is marked for a consolidation, or that loses its mark because that is taken back.
func (b *disruptionReport) addMark(w *world, s claimAnnotated) {
	if text, ok := s.set[disruption.AnnotationMark]; b != nil && ok && text == "" {
		if m, marked := markOf(s.claim); marked {
			b.moves = slices.DeleteFunc(b.moves, func(x *begunMove) bool { return x.id == m.ID })
		}
	}
	m, ok := begunConsolidation(w, s)
	if !ok {
		return
	}
	at := b.moveOf(m.ID)
	if at == nil {
		at = &begunMove{id: m.ID, at: time.Now(), sizes: w.workloads.appSizes(), net: map[nodeKind]int{},
			again: map[nodeKind]int{}}
		b.moves = append(b.moves, at)
	}
	labels := s.claim.Labels
	at.net[nodeKind{s.claim.Pool, labels[instancetypes.LabelType], labels[instancetypes.LabelCapacityType],
		labels[instancetypes.LabelZone]}]--
}

// addLaunch notes a claim that is made. That a kind is launched for pods after one was given up within the last hour,
// although no app has grown since, is counted, once for each that was given up: kube-scheduler may put moved pods so
// that one of them finds no room, and that is a loss as long as it is rare.
func (b *disruptionReport) addLaunch(w *world, s claimCreated) {
	if b == nil {
		return
	}
	choice := s.launch.Choice
	k := nodeKind{s.claim.Pool, choice.Type, choice.CapacityType, choice.Zone}
	if now := b.moveOf(s.claim.Annotations[disruption.AnnotationReplaces]); now != nil {
		now.net[k]++
		return
	}
	i := slices.IndexFunc(b.moves, func(m *begunMove) bool {
		return time.Since(m.at) <= lately && m.net[k]+m.again[k] < 0 && !needsMoreNodes(w, m)
	})
	if i >= 0 {
		b.again++
		b.moves[i].again[k]++
		w.addTrace("a %s is launched for %v, one of which disruption gave up lately", k, s.launch.Pods)
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
