package sim

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/cluster"
)

// CacheFault is a fault that the caches of all functions have in a run, to see whether anybody notices.
type CacheFault string

// The faults that a cache of watched objects may have.
const (
	EventLost        CacheFault = "an event is lost when the watch goes on"
	DeleteLost       CacheFault = "a deletion is lost when the watch goes on"
	GoneIsSilence    CacheFault = "410 Gone is taken for silence"
	OwnWritesIgnored CacheFault = "own writes are not waited for"
	ProofSkipped     CacheFault = "what a pass sees is not proved"
	FreezeUnnoticed  CacheFault = "what was seen before the freeze counts as seen now"
	RestoredAsNow    CacheFault = "what a checkpoint holds counts as seen now"
)

// CacheFaults are all of them.
func CacheFaults() []CacheFault {
	return []CacheFault{EventLost, DeleteLost, GoneIsSilence, OwnWritesIgnored, ProofSkipped, FreezeUnnoticed,
		RestoredAsNow}
}

// faultChance is the chance that something of a kind goes wrong when a process goes on.
const faultChance = 0.3

// faultyList says what is wrong with what a process knows of a kind.
type faultyList[T any] struct {
	loses  bool                      // one of the events since the last look
	silent bool                      // it is shown for ever as it was seen last, until the process writes
	pinned map[string]staleObject[T] // by UID
}

// staleObject is shown as it was, as long as it is stored as it is now; nil for not there.
type staleObject[T any] struct{ was, now *T }

// resume draws what goes wrong with the kind when its process goes on.
func (l *cachedList[T]) resume(c *processCaches) {
	if l.at == 0 {
		return
	}
	switch c.fault {
	case EventLost, DeleteLost:
		l.loses = c.drawChance(faultChance)
	case GoneIsSilence:
		l.silent = l.silent || c.drawChance(faultChance)
	case FreezeUnnoticed:
		l.when = time.Now()
	}
}

// withFaults is the list as stored, but for what was lost. Before is what was seen last.
func (l *faultyList[T]) withFaults(c *processCaches, before, stored []T) []T {
	if !l.loses && len(l.pinned) == 0 {
		return stored
	}
	is := objectsByUID(stored)
	if l.loses {
		l.loses = false
		l.loseOne(c, objectsByUID(before), is)
	}
	for _, uid := range slices.Sorted(maps.Keys(l.pinned)) {
		pin := l.pinned[uid]
		if pin.now != nil && !sameObject(pin.now, is[uid]) {
			delete(l.pinned, uid) // the next event tells all of it
			continue
		}
		stored = slices.DeleteFunc(stored, func(o T) bool { return uidOf(o) == uid })
		if pin.was != nil {
			stored = append(stored, *pin.was)
		}
	}
	slices.SortFunc(stored, func(a, b T) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return stored
}

// loseOne has one of the objects that have changed, or gone, shown as it was.
func (l *faultyList[T]) loseOne(c *processCaches, was, is map[string]*T) {
	var lost []string
	for uid, old := range was {
		if _, there := is[uid]; c.fault == DeleteLost && !there ||
			c.fault == EventLost && there && !sameObject(old, is[uid]) {
			lost = append(lost, uid)
		}
	}
	for uid := range is {
		if _, known := was[uid]; c.fault == EventLost && !known {
			lost = append(lost, uid)
		}
	}
	if len(lost) == 0 {
		return
	}
	slices.Sort(lost)
	uid := lost[c.rng.IntN(len(lost))]
	if l.pinned == nil {
		l.pinned = map[string]staleObject[T]{}
	}
	l.pinned[uid] = staleObject[T]{was[uid], is[uid]}
}

func sameObject[T any](a, b *T) bool { return a != nil && b != nil && reflect.DeepEqual(*a, *b) }

func objectsByUID[T any](list []T) map[string]*T {
	out := map[string]*T{}
	for i := range list {
		one := list[i]
		out[uidOf(one)] = &one
	}
	return out
}

func uidOf(o any) string {
	switch o := o.(type) {
	case cluster.Pod:
		return o.UID
	case cluster.Node:
		return o.UID
	case cluster.Claim:
		return o.UID
	}
	return ""
}

func nameOf(o any) string {
	switch o := o.(type) {
	case cluster.Pod:
		return o.Key()
	case cluster.Node:
		return o.Name
	case cluster.Claim:
		return o.Name
	}
	return ""
}
