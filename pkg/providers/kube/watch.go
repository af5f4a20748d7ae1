package kube

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/nodeclass/translate"
)

const (
	debounce     = 100 * time.Millisecond
	watchSeconds = 240
	maxBreaks    = 5 // of one watch without an event between
)

// changedError ends the watches: there is news.
type changedError struct{}

func (changedError) Error() string { return "something changed" }

// Wait returns nil when there is something new to look at, about 100 ms after the first sign, so that a burst wakes its
// caller once: a pod that needs a node and did not before, a NodeClaim that somebody else changed, or a Node that
// differs in what a snapshot shows of it. New is what the last PendingPods, ListClaims or ReadSnapshot of this client
// did not see; what was not read yet counts from the call. What this client wrote itself is not new. It returns
// ctx.Err() when ctx ends first, and another error if the API server cannot be watched.
func (c Reader) Wait(ctx context.Context) error {
	if err := c.readUnread(ctx); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, w := range []watched{
		{podPath(), withoutOne, watchSeconds, c.seen.podsVersionRead, c.seen.podNews},
		{claimPath(), "", watchSeconds, c.seen.claimsVersionRead, c.seen.claimNews},
		{nodePath(), "", watchSeconds, c.seen.nodesVersionRead, c.seen.nodeNews},
	} {
		g.Go(func() error { return c.followWatch(gctx, w) })
	}
	err := g.Wait()
	switch {
	case errors.Is(err, changedError{}):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

// readUnread reads what no list has read yet, so that there is something to compare with.
func (c Reader) readUnread(ctx context.Context) error {
	if c.seen.podsVersionRead() == "" {
		if _, err := c.pods().listWaiting(ctx); err != nil {
			return err
		}
	}
	if c.seen.claimsVersionRead() == "" {
		if _, err := c.claims().ListClaims(ctx); err != nil {
			return err
		}
	}
	if c.seen.nodesVersionRead() == "" {
		if _, err := c.nodes().ListNodes(ctx); err != nil {
			return err
		}
	}
	return nil
}

// watched is one watch: what, how long at most, from which version, and what to make of its events.
type watched struct {
	place   apiPath
	fields  string
	seconds int
	from    func() string
	news    func(watch.Event) (news bool)
}

// followWatch watches until there is news, which is changedError, and again whenever the server ends the watch.
func (c *connection) followWatch(ctx context.Context, w watched) error {
	what := apiCall{verb: "watch", place: w.place}
	for breaks := 0; ; {
		before := w.from()
		err := c.watchOnce(ctx, w)
		switch {
		case errors.Is(err, changedError{}):
			if !waitBeforeRetry(ctx, debounce) {
				return changedError{} // another watch had news first, or the time is up
			}
			return changedError{}
		case ctx.Err() != nil:
			return ctx.Err()
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			return changedError{} // too much happened to tell; looking again is the answer
		case err == nil && w.from() != before:
			breaks = 0
			continue
		}
		breaks++
		wait, again := firstPause, true
		if err != nil {
			wait, again = worthAnotherTry(err, firstPause<<breaks)
		}
		if !again || breaks > maxBreaks {
			return wrapError(what, orClosed(err))
		}
		waitBeforeRetry(ctx, wait)
	}
}

func orClosed(err error) error {
	if err == nil {
		return errors.New("the server keeps closing it")
	}
	return err
}

// watchOnce opens one watch and reads it to its end.
func (c *connection) watchOnce(ctx context.Context, w watched) error {
	r := c.restClient(w.place).Get().AbsPath(w.place.pathTo("", "", "")...).MaxRetries(0).
		Param("watch", "true").Param("allowWatchBookmarks", "true").Param("resourceVersion", w.from()).
		Param("timeoutSeconds", strconv.Itoa(w.seconds))
	stream, err := addParam(r, "fieldSelector", w.fields).Watch(ctx)
	if err != nil {
		return err
	}
	defer stream.Stop()
	for e := range stream.ResultChan() {
		if e.Type == watch.Error {
			return apierrors.FromObject(e.Object)
		}
		if _, ok := e.Object.(metav1.Object); !ok {
			return fmt.Errorf("unexpected %T in a watch", e.Object)
		}
		if w.news(e) {
			return changedError{}
		}
	}
	return nil
}

func (s *readCache) podNews(e watch.Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := e.Object.(*corev1.Pod)
	if !ok {
		return false
	}
	s.podsVersion = p.ResourceVersion
	if e.Type == watch.Bookmark {
		return false
	}
	uid := string(p.UID)
	known := s.pending[uid]
	if e.Type == watch.Deleted || p.Spec.NodeName != "" { // as most are, which need not be translated to know
		delete(s.pending, uid)
		return false
	}
	if pod := translate.Pod(p); !pod.Provisionable() {
		delete(s.pending, uid)
		return false
	}
	s.pending[uid] = true
	return !known
}

func (s *readCache) claimNews(e watch.Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := e.Object.(*karpv1.NodeClaim)
	if !ok {
		return false
	}
	s.claimsVersion = n.ResourceVersion
	return e.Type != watch.Bookmark && !s.takeOwn(n.ResourceVersion) && translate.IsOurClass(n.Spec.NodeClassRef)
}

func (s *readCache) nodeNews(e watch.Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := e.Object.(*corev1.Node)
	if !ok {
		return false
	}
	s.nodesVersion = n.ResourceVersion
	if e.Type == watch.Bookmark {
		return false
	}
	own := s.takeOwn(n.ResourceVersion)
	before, known := s.digests[n.Name]
	if e.Type == watch.Deleted {
		delete(s.digests, n.Name)
		delete(s.heads, string(n.UID))
		return true
	}
	s.heads[string(n.UID)] = headOf(n)
	now := nodeDigest(translate.Node(n))
	s.digests[n.Name] = now
	return !own && (!known || before != now)
}
