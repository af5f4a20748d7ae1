package kube

import (
	"context"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	karpv1 "joiner.sh/pkg/api/v1"
)

// storeRevision is a revision of the store that was read after a moment: whoever has got there knows all that was
// stored before.
type storeRevision struct {
	revision uint64
	began    time.Time
}

// aimAt has the watch get to a revision of the store that is read now, unless it is on the way to one that proves the
// time given. It reports false if no watch can prove that: too little is known of the kind for one, the revision cannot
// be read, or the store was set back.
func (c *ClusterCache) aimAt(ctx context.Context, k *followedKind, since time.Time) bool {
	c.mu.Lock()
	able, known, aimed := k.isMuch() && c.isFollowed(k), k.version, k.isAimed(since, c.invalid)
	c.mu.Unlock()
	if !able || aimed {
		return able
	}
	began := time.Now()
	revision, err := c.currentRevision(ctx, k)
	if err != nil || revision < known {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k.aims = append(k.aims, storeRevision{revision, began})
	if k.wanted = max(k.wanted, revision); revision > k.version && !k.short {
		k.reopen()
	}
	c.notifyWaiters()
	return true
}

// isAimed reports whether what proves both times is reached already, or on its way. The lock is held.
func (k *followedKind) isAimed(since, invalid time.Time) bool {
	if invalid.After(since) {
		since = invalid
	}
	return !k.proven.Before(since) || slices.ContainsFunc(k.aims,
		func(a storeRevision) bool { return !a.began.Before(since) })
}

// currentRevision is the revision of the store at a moment after the call. The kind is asked for itself, so that the
// API server's cache of it has got there.
func (r Reader) currentRevision(ctx context.Context, k *followedKind) (uint64, error) {
	var into listObject = newPods()
	switch k.place {
	case nodePath():
		into = &corev1.NodeList{}
	case claimPath():
		into = &karpv1.NodeClaimList{}
	}
	err := r.sendWithRetries(ctx, apiCall{verb: "read the revision of", place: k.place}, func() *rest.Request {
		return r.restClient(k.place).Get().AbsPath(k.place.pathTo("", "", "")...).Param("limit", "1")
	}, into)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(into.GetResourceVersion(), 10, 64)
}
