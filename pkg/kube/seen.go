package kube

import (
	"encoding/json"
	"hash/fnv"
	"sync"

	"joiner/pkg/cluster"
)

// seen is what this client read last, so that Wait can tell news from what is known.
type seen struct {
	mu                                       sync.Mutex
	podsVersion, claimsVersion, nodesVersion string
	homeless                                 map[string]bool   // UIDs of pods that need a node
	digests                                  map[string]uint64 // of nodes, by name
	own                                      map[string]bool   // versions of claims and nodes that this client wrote
}

func newSeen() *seen {
	return &seen{homeless: map[string]bool{}, digests: map[string]uint64{}, own: map[string]bool{}}
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

func (s *seen) claims(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claimsVersion = version
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
