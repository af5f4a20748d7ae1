package kube

import (
	"encoding/json"
	"hash/fnv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// readCache holds what this client read last, so that Wait can tell news from what is known.
type readCache struct {
	mu                                       sync.Mutex
	podsVersion, claimsVersion, nodesVersion string
	pending                                  map[string]bool   // UIDs
	digests                                  map[string]uint64 // of nodes, by name
	// versions of claims and nodes that this client wrote
	own      map[string]bool
	statuses map[string]storedStatus // of claims as listed or written last, by UID
	// as listed, told or written last, by UID; what is in one is never changed
	heads map[string]*corev1.Node
}

// mostHeads caps the objects that are remembered that were read one by one.
const mostHeads = 1000

// storedStatus is the status of a claim as it is stored in that version. It is never changed.
type storedStatus struct {
	version    string
	status     *karpv1.NodeClaimStatus
	finalizers []string
}

func storedStatusOf(n *karpv1.NodeClaim) storedStatus {
	status := n.Status // a copy, or the whole page would stay in memory
	return storedStatus{n.ResourceVersion, &status, n.Finalizers}
}

// headOf returns the parts of a node at which writes to it look.
func headOf(n *corev1.Node) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion,
		DeletionTimestamp: n.DeletionTimestamp,
		Labels:            n.Labels, Annotations: n.Annotations, Finalizers: n.Finalizers,
		OwnerReferences: n.OwnerReferences},
		Spec: corev1.NodeSpec{Taints: n.Spec.Taints}}
}

func newReadCache() *readCache {
	return &readCache{pending: map[string]bool{}, digests: map[string]uint64{}, own: map[string]bool{},
		statuses: map[string]storedStatus{},
		heads:    map[string]*corev1.Node{}}
}

// keepPods remembers the pods that need a node, all of that version.
func (s *readCache) keepPods(version string, pending []cluster.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.podsVersion = version
	clear(s.pending)
	s.addPending(pending)
}

// notePending has no watch tell of these pods again as long as they need a node.
func (s *readCache) notePending(pods []cluster.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addPending(pods)
}

func (s *readCache) addPending(pods []cluster.Pod) {
	for i := range pods {
		s.pending[pods[i].UID] = true
	}
}

func (s *readCache) keepClaims(version string, statuses map[string]storedStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claimsVersion, s.statuses = version, statuses
}

// keepStatus remembers the status of a claim that this client wrote.
func (s *readCache) keepStatus(n *karpv1.NodeClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statuses[string(n.UID)] = storedStatusOf(n)
}

// keepSingleClaims remembers claims that were read by themselves.
func (s *readCache) keepSingleClaims(claims []karpv1.NodeClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.statuses) >= mostHeads && s.claimsVersion == "" {
		clear(s.statuses)
	}
	for i := range claims {
		s.statuses[string(claims[i].UID)] = storedStatusOf(&claims[i])
	}
}

// keepNode remembers a node that was read by itself.
func (s *readCache) keepNode(n *corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.heads) >= mostHeads && s.nodesVersion == "" {
		clear(s.heads)
	}
	s.heads[string(n.UID)] = headOf(n)
}

// nodeSeen is the node of that UID as it was seen last, nil when it was not.
func (s *readCache) nodeSeen(uid string) *corev1.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heads[uid]
}

// claimSeen is as much of the claim in the version given as its release looks at, nil when it is not known.
func (s *readCache) claimSeen(c cluster.Claim) *karpv1.NodeClaim {
	known, ok := s.storedSeen(c)
	if !ok {
		return nil
	}
	return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: c.Name, UID: uidOf(c.UID), ResourceVersion: c.Version,
		Finalizers: known.finalizers}}
}

// statusSeen is a copy of the status of the claim in the version given, nil when it is not known.
func (s *readCache) statusSeen(c cluster.Claim) *karpv1.NodeClaimStatus {
	known, ok := s.storedSeen(c)
	if !ok {
		return nil
	}
	return known.status.DeepCopy()
}

// storedSeen returns what is known of the claim, if that is of the version given.
func (s *readCache) storedSeen(c cluster.Claim) (known storedStatus, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok = s.statuses[c.UID]
	return known, ok && known.version == c.Version
}

func (s *readCache) keepNodes(version string, list []cluster.Node, heads map[string]*corev1.Node) {
	digests := make(map[string]uint64, len(list))
	for _, n := range list {
		digests[n.Name] = nodeDigest(n)
	}
	s.keepDigests(version, digests, heads)
}

func (s *readCache) keepDigests(version string, digests map[string]uint64, heads map[string]*corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodesVersion, s.digests, s.heads = version, digests, heads
}

func (s *readCache) podsVersionRead() string   { return s.withLock(&s.podsVersion) }
func (s *readCache) claimsVersionRead() string { return s.withLock(&s.claimsVersion) }
func (s *readCache) nodesVersionRead() string  { return s.withLock(&s.nodesVersion) }

func (s *readCache) withLock(v *string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *v
}

// keepWritten remembers a version that this client made.
func (s *readCache) keepWritten(version string) {
	const most = 10_000 // far more than one pass writes
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.own) >= most {
		clear(s.own)
	}
	s.own[version] = true
}

// takeOwn reports whether this client made that version. The caller holds the lock.
func (s *readCache) takeOwn(version string) bool {
	was := s.own[version]
	delete(s.own, version)
	return was
}

// nodeDigest is a number that differs when what a snapshot shows of the node differs. The heartbeat of a kubelet is not
// in it.
func nodeDigest(n cluster.Node) uint64 {
	h := fnv.New64a()
	if err := json.NewEncoder(h).Encode(n); err != nil {
		return 0 // cannot happen: the value holds only strings, numbers and times
	}
	return h.Sum64()
}
