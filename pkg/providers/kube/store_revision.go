package kube

import (
	"context"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
)

// storeRevision is a revision of the store that was read after a moment: whoever has got there knows all that was
// stored before.
type storeRevision struct {
	revision uint64
	began    time.Time
}

// aimAt has the bookmark that somebody waits for prove this moment as well, if nothing else that is waited for proves
// the time given. Where the store's revision cannot be read, or says that the store was set back, the next proof finds
// out.
func (m *ClusterCache) aimAt(ctx context.Context, k *followedKind, since time.Time) {
	m.mu.Lock()
	able, known := k.isMuch() && m.isFollowed(k), k.version
	aimed := slices.ContainsFunc(k.aims, func(a storeRevision) bool { return !a.began.Before(since) })
	m.mu.Unlock()
	if !able || aimed {
		return
	}
	began := time.Now()
	revision, err := m.currentRevision(ctx, k)
	if err != nil || revision < known {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k.aims = append(k.aims, storeRevision{revision, began})
	k.wanted = max(k.wanted, revision)
	m.notifyWaiters()
}

// currentRevision is the revision of the store at a moment after the call. The kind is asked for itself, so that the
// API server's cache of it has got there.
func (c Reader) currentRevision(ctx context.Context, k *followedKind) (uint64, error) {
	var into listObject = newPods()
	switch k.place {
	case nodePath():
		into = newNodes()
	case claimPath():
		into = newClaims()
	}
	err := c.sendWithRetries(ctx, apiCall{verb: "read the revision of", place: k.place}, func() *rest.Request {
		return c.restClient(k.place).Get().AbsPath(k.place.pathTo("", "", "")...).Param("limit", "1")
	}, into)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(into.GetResourceVersion(), 10, 64)
}
