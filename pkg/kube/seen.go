package kube

import (
	"encoding/json"
	"hash/fnv"
	"sync"

	karpv1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
)

// seen is what this client read last, so that Wait can tell news from what is known.
type seen struct {
	mu                                       sync.Mutex
	podsVersion, claimsVersion, nodesVersion string
	homeless                                 map[string]bool         // UIDs of pods that need a node
	digests                                  map[string]uint64       // of nodes, by name
	own                                      map[string]bool         // versions of claims and nodes that this client wrote
	statuses                                 map[string]storedStatus // of claims as listed or written last, by UID
}

// storedStatus is the status of a claim as it is stored in that version. It is never changed.
type storedStatus struct {
	version string
	status  *karpv1.NodeClaimStatus
}

func newSeen() *seen {
	return &seen{homeless: map[string]bool{}, digests: map[string]uint64{}, own: map[string]bool{}, statuses: map[string]storedStatus{}}
}

func (s *seen) pods(version string, list []cluster.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.podsVersion = version
	clear(s.homeless)
	for _, p := range list {
		if p.Provisionable() {
			s.homeless[p.UID] = true
		}
	}
}

func (s *seen) claims(version string, statuses map[string]storedStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claimsVersion, s.statuses = version, statuses
}

// holds remembers the status of a claim that this client wrote.
func (s *seen) holds(n *karpv1.NodeClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := n.Status
	s.statuses[string(n.UID)] = storedStatus{n.ResourceVersion, &status}
}

// status is a copy of the status of the claim in the version given, nil when it is not known.
func (s *seen) status(c cluster.Claim) *karpv1.NodeClaimStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.statuses[c.UID]
	if known.status == nil || known.version != c.Version {
		return nil
	}
	return known.status.DeepCopy()
}

func (s *seen) nodes(version string, list []cluster.Node) {
	digests := make(map[string]uint64, len(list))
	for _, n := range list {
		digests[n.Name] = digest(n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodesVersion, s.digests = version, digests
}

func (s *seen) podsAt() string   { return s.locked(&s.podsVersion) }
func (s *seen) claimsAt() string { return s.locked(&s.claimsVersion) }
func (s *seen) nodesAt() string  { return s.locked(&s.nodesVersion) }

func (s *seen) locked(v *string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *v
}

// wrote remembers a version that this client made.
func (s *seen) wrote(version string) {
	const most = 10_000 // far more than one pass writes
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.own) >= most {
		clear(s.own)
	}
	s.own[version] = true
}

// takeOwn reports whether this client made that version. The caller holds the lock.
func (s *seen) takeOwn(version string) bool {
	was := s.own[version]
	delete(s.own, version)
	return was
}

// digest is a number that differs when what a snapshot shows of the node differs. The heartbeat of a kubelet is not in it.
func digest(n cluster.Node) uint64 {
	h := fnv.New64a()
	if err := json.NewEncoder(h).Encode(n); err != nil {
		return 0 // cannot happen: the value holds only strings, numbers and times
	}
	return h.Sum64()
}
