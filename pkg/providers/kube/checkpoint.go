package kube

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"joiner.sh/pkg/nodeclass/translate"
)

const (
	// checkpointEvery is the shortest time between two checkpoints, if something was told. The history of a busy kind
	// is sure for 75 seconds, and the function that writes runs once a minute.
	checkpointEvery = 45 * time.Second
	// checkpointAnyway is the age at which one is replaced though nothing was told, so that it does not grow too old.
	checkpointAnyway = maxCheckpointAge / 3
	// restoredFor is the time for which a process believes a checkpoint: no watch tells of what is missing in one that
	// somebody forged. Until it has listed it writes none, so it lists before the one that is there is too old.
	restoredFor = 2 * maxCheckpointAge / 3
	// checkpointTakes is the time that an invocation must have left for one to be read or written.
	checkpointTakes = 5 * time.Second
)

// CheckpointStore keeps one checkpoint of the cluster's cache. Both calls may be repeated.
type CheckpointStore interface {
	// ReadCheckpoint returns the checkpoint, nil if there is none. It fails for one of more than most bytes.
	ReadCheckpoint(ctx context.Context, most int64) ([]byte, error)
	// WriteCheckpoint replaces the checkpoint as a whole.
	WriteCheckpoint(ctx context.Context, b []byte) error
}

// CheckpointOptions say where checkpoints are, and whose are believed.
type CheckpointOptions struct {
	Store CheckpointStore
	// Of names the cluster and the program: checkpoints of others are not believed.
	Of string
	// Tell is told what was read, or why a list is read instead.
	Tell func(what string, fields ...any)
}

// Checkpoints has the cache of a new process begin with what another process knew. A cluster whose nodes are listed as
// quickly writes and reads none. What it remembers is under the lock of the cache.
type Checkpoints struct {
	*CheckpointOptions // nil: neither written nor read

	cache       *ClusterCache
	asked       bool          // for one, in this invocation
	told        uint64        // events and lists of the kinds
	writtenAt   time.Time     // by the wall clock
	writtenTold uint64        // told when one was written last
	one         chan struct{} // held by who reads
}

// Use has the cache begin with a checkpoint in place of a list. It is called before the first Resume.
func (s *Checkpoints) Use(o CheckpointOptions) { s.CheckpointOptions = &o }

// restoreUnknown has the cache know what a checkpoint holds of kinds that are unknown, once in an invocation. What it
// knows then is as old as if the cache had been frozen since: nothing of it is proven.
func (s *Checkpoints) restoreUnknown(ctx context.Context, k *followedKind) {
	cache := s.cache
	if s.CheckpointOptions == nil {
		return
	}
	select {
	case s.one <- struct{}{}:
		defer func() { <-s.one }()
	case <-ctx.Done():
		return
	}
	cache.mu.Lock()
	wanted := k.version == 0 && !s.asked
	s.asked = s.asked || wanted
	cache.mu.Unlock()
	if !wanted {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkpointTakes)
	defer cancel()
	nodes, err := s.countNodes(ctx)
	if err != nil || nodes <= cache.kinds[1].few {
		return
	}
	began := time.Now()
	b, err := s.Store.ReadCheckpoint(ctx, int64(min(maxCheckpoint, nodes*maxPerNode)))
	switch {
	case err != nil:
		s.Tell("a checkpoint of the cluster cannot be read, so it is listed", "error", err.Error())
		return
	case b == nil:
		s.Tell("there is no checkpoint of the cluster, so it is listed")
		return
	}
	c, err := decodeCheckpoint(b, s.Of, cache.now(), &cache.shapes)
	if err != nil {
		s.Tell("a checkpoint of the cluster is not used, and the cluster is listed", "error", err.Error())
		return
	}
	kinds := s.adopt(c)
	s.Tell("a checkpoint of the cluster was read", "kinds", kinds, "pods", c.pods.Len(), "bytes", len(b),
		"ageSeconds", int(cache.now().Sub(c.written).Seconds()), "ms", time.Since(began).Milliseconds())
}

// adopt takes over what is unknown and not being listed, but for versions that the API server is known to
// have forgotten. It returns the plurals of these kinds.
func (s *Checkpoints) adopt(c *checkpoint) (kinds []string) {
	for i, k := range s.cache.kinds {
		select {
		case k.one <- struct{}{}:
			if s.adoptKind(k, c, i) {
				kinds = append(kinds, k.place.plural)
			}
			<-k.one
		default: // a list comes, which is newer
		}
	}
	return kinds
}

func (s *Checkpoints) adoptKind(k *followedKind, c *checkpoint, at int) bool {
	cache := s.cache
	cache.mu.Lock()
	defer cache.mu.Unlock()
	if k.version != 0 || c.versions[at] <= k.gone || k.isDoubted() {
		return false
	}
	cache.own.beginList(k.place.plural) // what is written from now on must be told
	if k.unfinished != nil {
		k.unfinished.forget()
	}
	k.restore(c, strconv.FormatUint(c.versions[at], 10))
	k.version, k.proven, k.took, k.restored = c.versions[at], time.Time{}, c.took[at],
		time.Now().Round(0) // by the wall clock: a process may be frozen meanwhile
	k.reopen() // a watch from before a list that failed would tell of later changes alone
	cache.notifyWaiters()
	return true
}

func (s *Checkpoints) restorePods(c *checkpoint, version string) {
	cache := s.cache
	cache.objects.pods, cache.objects.sorted, cache.objects.changed = podsByUID(c.pods.All()), c.pods, map[string]bool{}
	cache.seen.keepPods(version, findWaiting(cache.objects.pods))
}

// restoreNodes leaves it to writes to read the node that they change.
func (s *Checkpoints) restoreNodes(c *checkpoint, version string) {
	cache := s.cache
	cache.objects.nodes = c.nodes
	cache.seen.keepDigests(version, c.digests, map[string]*corev1.Node{})
}

// restoreClaims leaves it to writes to read the claim that they change.
func (s *Checkpoints) restoreClaims(c *checkpoint, version string) {
	cache := s.cache
	cache.objects.claims = c.claims
	cache.seen.keepClaims(version, map[string]storedStatus{})
}

// countNodes returns the number of nodes of the cluster, about. It reads one.
func (s *Checkpoints) countNodes(ctx context.Context) (int, error) {
	into, c := &corev1.NodeList{}, s.cache
	err := c.sendWithRetries(ctx, apiCall{verb: "count", place: nodePath()}, func() *rest.Request {
		return c.core.Get().AbsPath(nodePath().pathTo("", "", "")...).Param("limit", "1")
	}, into)
	if err != nil || into.RemainingItemCount == nil {
		return 0, err
	}
	return int(*into.RemainingItemCount) + len(into.Items), nil
}

// Write stores what is known for processes that start, between two invocations: if it is much, something was
// told since the last one, and that one is not too young. It does nothing without Use.
func (s *Checkpoints) Write(ctx context.Context) error {
	if s.CheckpointOptions == nil {
		return nil
	}
	s.cache.inUse.Lock()
	defer s.cache.inUse.Unlock()
	if end, ok := ctx.Deadline(); ok && time.Until(end) < checkpointTakes+endingTakes {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkpointTakes)
	defer cancel()
	c := s.take()
	if c == nil {
		return nil
	}
	b := c.encode(s.Of)
	if len(b) > maxCheckpoint {
		return fmt.Errorf("write a checkpoint: it has %d bytes, at most %d are read", len(b), maxCheckpoint)
	}
	if err := s.Store.WriteCheckpoint(ctx, b); err != nil {
		return fmt.Errorf("write a checkpoint: %w", err)
	}
	return nil
}

// take returns what is known if it is to be written, else nil. One that cannot be written is not tried again soon
// either.
func (s *Checkpoints) take() *checkpoint {
	cache := s.cache
	cache.mu.Lock()
	defer cache.mu.Unlock()
	now := time.Now().Round(0)
	age := now.Sub(s.writtenAt)
	if age < checkpointEvery || s.told == s.writtenTold && age < checkpointAnyway {
		return nil
	}
	c := &checkpoint{written: cache.now(), digests: cache.seen.copyDigests()}
	for i, k := range cache.kinds {
		if k.version == 0 || !k.restored.IsZero() {
			return nil // it is not known what there is, or only by a checkpoint
		}
		c.versions[i], c.took[i] = k.version, k.took
	}
	if len(cache.objects.nodes) <= cache.kinds[1].few {
		return nil
	}
	s.writtenAt, s.writtenTold = now, s.told
	all := cache.objects.takeSnapshot()
	c.pods, c.nodes, c.claims = all.sorted, all.nodes, all.claims
	return c
}

func (c *readCache) copyDigests() map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.digests)
}

func podsByUID(all iter.Seq[*translate.ListedPod]) map[string]*translate.ListedPod {
	out := map[string]*translate.ListedPod{}
	for p := range all {
		out[p.UID] = p
	}
	return out
}
