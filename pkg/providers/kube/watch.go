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
func (r Reader) Wait(ctx context.Context) error {
	if err := r.readUnread(ctx); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, w := range []watched{
		{podPath(), withoutOne, watchSeconds, r.seen.podsVersionRead, r.seen.podNews},
		{claimPath(), "", watchSeconds, r.seen.claimsVersionRead, r.seen.claimNews},
		{nodePath(), "", watchSeconds, r.seen.nodesVersionRead, r.seen.nodeNews},
	} {
		g.Go(func() error { return r.followWatch(gctx, w) })
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
func (r Reader) readUnread(ctx context.Context) error {
	if r.seen.podsVersionRead() == "" {
		if _, err := r.pods().listWaiting(ctx); err != nil {
			return err
		}
	}
	if r.seen.claimsVersionRead() == "" {
		if _, err := r.claims().ListClaims(ctx); err != nil {
			return err
		}
	}
	if r.seen.nodesVersionRead() == "" {
		if _, err := r.nodes().ListNodes(ctx); err != nil {
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
			waitBeforeRetry(ctx, debounce) // less where another watch had news first, or the time is up
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

func (c *readCache) podNews(e watch.Event) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := e.Object.(*corev1.Pod)
	if !ok {
		return false
	}
	c.podsVersion = p.ResourceVersion
	if e.Type == watch.Bookmark {
		return false
	}
	uid := string(p.UID)
	known := c.pending[uid]
	if e.Type == watch.Deleted || p.Spec.NodeName != "" { // as most are, which need not be translated to know
		delete(c.pending, uid)
		return false
	}
	if pod := translate.Pod(p); !pod.Provisionable() {
		delete(c.pending, uid)
		return false
	}
	c.pending[uid] = true
	return !known
}

func (c *readCache) claimNews(e watch.Event) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := e.Object.(*karpv1.NodeClaim)
	if !ok {
		return false
	}
	c.claimsVersion = n.ResourceVersion
	return e.Type != watch.Bookmark && !c.takeOwn(n.ResourceVersion) && translate.IsOurClass(n.Spec.NodeClassRef)
}

func (c *readCache) nodeNews(e watch.Event) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := e.Object.(*corev1.Node)
	if !ok {
		return false
	}
	c.nodesVersion = n.ResourceVersion
	if e.Type == watch.Bookmark {
		return false
	}
	own := c.takeOwn(n.ResourceVersion)
	before, known := c.digests[n.Name]
	if e.Type == watch.Deleted {
		delete(c.digests, n.Name)
		delete(c.heads, string(n.UID))
		return true
	}
	c.heads[string(n.UID)] = headOf(n)
	now := nodeDigest(translate.Node(n))
	c.digests[n.Name] = now
	return !own && (!known || before != now)
}
