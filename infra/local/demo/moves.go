package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"joiner.sh/infra/local/env"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
)

// moving follows every change of the NodeClaims, so that none is missed however seldom somebody looks: in which order
// disruption did things is known afterwards.
type moving struct {
	stop func()

	mu     sync.Mutex
	claims map[string]unstructured.Unstructured
	moves  moves
	broken error // the first thing that did not hold, or why the watch ended
}

func (s *story) followMoves(ctx context.Context) (*moving, error) {
	r := s.Kube.Dynamic.Resource(env.NodeClaims())
	list, err := r.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	w, err := watchFrom(ctx, list.GetResourceVersion(),
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return r.Watch(ctx, o) })
	if err != nil {
		return nil, err
	}
	f := &moving{stop: w.Stop, claims: map[string]unstructured.Unstructured{}, moves: moves{}}
	for _, c := range list.Items {
		f.claims[c.GetName()] = c
	}
	go func() {
		for e := range w.ResultChan() {
			f.noteEvent(e)
		}
	}()
	return f, nil
}

// noteEvent takes in one change.
func (f *moving) noteEvent(e watch.Event) {
	if e.Type == watch.Bookmark {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := e.Object.(*unstructured.Unstructured)
	switch {
	case f.broken != nil:
		return
	case !ok || e.Type == watch.Error:
		f.broken = fmt.Errorf("the watch of the NodeClaims ended, so what disruption does is not known: %w",
			apierrors.FromObject(e.Object))
		return
	case e.Type == watch.Deleted:
		delete(f.claims, c.GetName())
	default:
		f.claims[c.GetName()] = *c
	}
	f.broken = f.moves.noteClaims(slices.Collect(maps.Values(f.claims)))
}

// currentMoves returns how far the moves are. It fails when a node was drained before its replacements were ready.
func (f *moving) currentMoves() (moves, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := moves{}
	for name, one := range f.moves {
		as := *one
		out[name] = &as
	}
	return out, f.broken
}

// moves are the NodeClaims that disruption has begun with, by name.
type moves map[string]*moved

// moved is one of them.
type moved struct {
	mark    disruption.CommandMark
	deleted time.Time // zero as long as its replacements are waited for
	gone    bool
}

// String says how far they are.
func (m moves) String() string {
	var marked, deleted, gone int
	for _, one := range m {
		switch {
		case one.gone:
			gone++
		case !one.deleted.IsZero():
			deleted++
		default:
			marked++
		}
	}
	return fmt.Sprintf("%d nodes wait for what replaces them, %d are drained, %d are gone", marked, deleted, gone)
}

// hasBegun reports whether a node goes after what replaces it has come.
func (m moves) hasBegun() bool {
	for _, one := range m {
		if one.mark.Replacements > 0 && !one.deleted.IsZero() {
			return true
		}
	}
	return false
}

// allDone reports whether all nodes have gone for which one command brought others.
func (m moves) allDone() bool {
	left := map[string]int{}
	for _, one := range m {
		if one.mark.Replacements == 0 {
			continue
		}
		left[one.mark.ID] += 0
		if !one.gone {
			left[one.mark.ID]++
		}
	}
	return slices.Contains(slices.Collect(maps.Values(left)), 0)
}

// allPacked reports whether nodes went, none of them for a replacement, and no more are to go. Where the scheduler has
// put the pods decides whether they have room on the nodes that stay.
func (m moves) allPacked() bool {
	for _, one := range m {
		if !one.gone || one.mark.Replacements > 0 {
			return false
		}
	}
	return len(m) > 0
}

// noteClaims brings the moves up to date.
func (m moves) noteClaims(claims []unstructured.Unstructured) error {
	there := map[string]bool{}
	for _, c := range claims {
		there[c.GetName()] = true
		text := c.GetAnnotations()[disruption.AnnotationMark]
		if text == "" {
			delete(m, c.GetName()) // taken back
			continue
		}
		if m[c.GetName()] == nil {
			m[c.GetName()] = &moved{}
		}
		one := m[c.GetName()]
		if err := json.Unmarshal([]byte(text), &one.mark); err != nil {
			return fmt.Errorf("read the mark of NodeClaim %s: %w", c.GetName(), err)
		}
		if at := c.GetDeletionTimestamp(); at != nil && one.deleted.IsZero() {
			one.deleted = at.Time
			if n := readyBy(claims, one.mark.ID, at.Time); n < one.mark.Replacements {
				return fmt.Errorf("NodeClaim %s was deleted when %d of its %d replacements were ready", c.GetName(), n,
					one.mark.Replacements)
			}
		}
	}
	for name, one := range m {
		if one.gone = !there[name]; one.gone && one.deleted.IsZero() {
			return errors.New("NodeClaim " + name + " was gone before anybody saw whether its replacements were ready")
		}
	}
	return nil
}

// readyBy counts the replacements of a command whose nodes were ready then. Times of the API have whole seconds. Those
// that are held for the pods that are to be drained are not initialized before: what keeps a Ready one from it is its
// hold.
func readyBy(claims []unstructured.Unstructured, id string, then time.Time) (n int) {
	for _, c := range claims {
		if c.GetAnnotations()[disruption.AnnotationReplaces] != id {
			continue
		}
		all, _, _ := unstructured.NestedSlice(c.Object, "status", "conditions")
		for _, k := range all {
			k, ok := k.(map[string]any)
			if !ok || k["type"] != v1.ConditionInitialized {
				continue
			}
			since, err := time.Parse(time.RFC3339, fmt.Sprint(k["lastTransitionTime"]))
			held := c.GetAnnotations()[v1.AnnotationNominatedOwners] != "" && k["reason"] == v1.ReasonStartupTaintsExist
			if held || k["status"] == "True" && err == nil && !since.After(then) {
				n++
			}
		}
	}
	return n
}
