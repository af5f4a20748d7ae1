package kube

import (
	"sync"

	"joiner.sh/pkg/model/cluster"
)

// podMemory is the memory of the pods of a snapshot, which the first one of the next invocation uses again. A look at a
// large cluster would make most of the garbage of an invocation that finds nothing to do.
type podMemory struct {
	mu   sync.Mutex
	free []cluster.Pod // of the invocation before
	used []cluster.Pod // of this one
}

// endInvocation has the memory that the invocation used be free. What it did not use is given back.
func (m *podMemory) endInvocation() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free, m.used = m.used, nil
}

// take is memory that nobody uses any more, or none.
func (m *podMemory) take() []cluster.Pod {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.free
	m.free = nil
	return out
}

// lend remembers memory that the invocation uses.
func (m *podMemory) lend(pods []cluster.Pod) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = pods
}
