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
func (c *readCache) keepPods(version string, pending []cluster.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.podsVersion = version
	clear(c.pending)
	c.addPending(pending)
}

// notePending has no watch tell of these pods again as long as they need a node.
func (c *readCache) notePending(pods []cluster.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addPending(pods)
}

func (c *readCache) addPending(pods []cluster.Pod) {
	for i := range pods {
		c.pending[pods[i].UID] = true
	}
}

func (c *readCache) keepClaims(version string, statuses map[string]storedStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claimsVersion, c.statuses = version, statuses
}

// keepStatus remembers the status of a claim that this client wrote.
func (c *readCache) keepStatus(n *karpv1.NodeClaim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statuses[string(n.UID)] = storedStatusOf(n)
}

// keepSingleClaims remembers claims that were read by themselves.
func (c *readCache) keepSingleClaims(claims []karpv1.NodeClaim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.statuses) >= mostHeads && c.claimsVersion == "" {
		clear(c.statuses)
	}
	for i := range claims {
		c.statuses[string(claims[i].UID)] = storedStatusOf(&claims[i])
	}
}

// keepNode remembers a node that was read by itself.
func (c *readCache) keepNode(n *corev1.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.heads) >= mostHeads && c.nodesVersion == "" {
		clear(c.heads)
	}
	c.heads[string(n.UID)] = headOf(n)
}

// nodeSeen is the node of that UID as it was seen last, nil when it was not.
func (c *readCache) nodeSeen(uid string) *corev1.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heads[uid]
}

// claimSeen is as much of the claim in the version given as its release looks at, nil when it is not known.
func (c *readCache) claimSeen(claim cluster.Claim) *karpv1.NodeClaim {
	known, ok := c.storedSeen(claim)
	if !ok {
		return nil
	}
	return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim.Name, UID: uidOf(claim.UID),
		ResourceVersion: claim.Version, Finalizers: known.finalizers}}
}

// statusSeen is a copy of the status of the claim in the version given, nil when it is not known.
func (c *readCache) statusSeen(claim cluster.Claim) *karpv1.NodeClaimStatus {
	known, ok := c.storedSeen(claim)
	if !ok {
		return nil
	}
	return known.status.DeepCopy()
}

// storedSeen returns what is known of the claim, if that is of the version given.
func (c *readCache) storedSeen(claim cluster.Claim) (known storedStatus, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok = c.statuses[claim.UID]
	return known, ok && known.version == claim.Version
}

func (c *readCache) keepNodes(version string, list []cluster.Node, heads map[string]*corev1.Node) {
	digests := make(map[string]uint64, len(list))
	for _, n := range list {
		digests[n.Name] = nodeDigest(n)
	}
	c.keepDigests(version, digests, heads)
}

func (c *readCache) keepDigests(version string, digests map[string]uint64, heads map[string]*corev1.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodesVersion, c.digests, c.heads = version, digests, heads
}

func (c *readCache) podsVersionRead() string   { return c.withLock(&c.podsVersion) }
func (c *readCache) claimsVersionRead() string { return c.withLock(&c.claimsVersion) }
func (c *readCache) nodesVersionRead() string  { return c.withLock(&c.nodesVersion) }

func (c *readCache) withLock(v *string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *v
}

// keepWritten remembers a version that this client made.
func (c *readCache) keepWritten(version string) {
	const most = 10_000 // far more than one pass writes
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.own) >= most {
		clear(c.own)
	}
	c.own[version] = true
}

// takeOwn reports whether this client made that version. The caller holds the lock.
func (c *readCache) takeOwn(version string) bool {
	was := c.own[version]
	delete(c.own, version)
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
