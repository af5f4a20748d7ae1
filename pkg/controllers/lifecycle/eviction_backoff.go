package lifecycle

import (
	"sync"
	"time"

	"joiner.sh/pkg/model/cluster"
)

// Pauses between questions to the eviction API about one pod.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 10 * time.Second
	maxRefusals   = 10_000
)

// EvictionBackoff remembers which pods the eviction API refused and when to ask for them again, each time later. It
// belongs to a process and outlives its invocations. A new process asks for each pod once, and goes on with the pause
// that the age of the drain tells: it need not start anew. The zero value is ready; it may be used by several
// goroutines.
type EvictionBackoff struct {
	mu  sync.Mutex
	pod map[string]refusedEviction // by UID
}

type refusedEviction struct {
	pause time.Duration
	until time.Time
}

// markRetryTimes tells each pod that was refused when it may be asked for again.
func (b *EvictionBackoff) markRetryTimes(pods []cluster.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range pods {
		if known, ok := b.pod[pods[i].UID]; ok {
			pods[i].AskAgain = known.until
		}
	}
}

// addRefusal remembers that a pod was refused now, on a node that is drained since then.
func (b *EvictionBackoff) addRefusal(uid string, since, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pod == nil || len(b.pod) >= maxRefusals {
		b.pod = map[string]refusedEviction{}
	}
	pause := 2 * b.pod[uid].pause
	if pause == 0 && !since.IsZero() {
		pause = now.Sub(since) / 2
	}
	pause = min(max(pause, shortestPause), longestPause)
	b.pod[uid] = refusedEviction{pause, now.Add(pause)}
}

// forgetPod forgets a pod that was evicted.
func (b *EvictionBackoff) forgetPod(uid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pod, uid)
}
