package sim

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"joiner.sh/pkg/model/cluster"
)

// engine orders everything that happens, and is shared by all parts. One goroutine, the loop, does all deeds; the
// goroutines of invocations only post requests and wait. Between two deeds the loop lets all of them come to rest, and
// then takes what they posted in sorted order, so that the order of the runtime's scheduler never shows. All chance
// comes from one generator, drawn from by the loop alone.
type engine struct {
	rng   *rand.Rand
	began time.Time
	queue timerQueue
	seq   int
	trace trace
	bad   []Violation

	plan    seedPlan
	rules   cluster.Settings // of the functions
	trouble bool             // things go wrong
	made    int              // for names and UIDs
	changes mutations
	observe func(step any) // is told of every step, to check it

	posted chan struct{} // something was posted while the loop slept

	mu      sync.Mutex // what follows is touched by invocations too, never while blocked
	arrived []*portRequest
	said    []string // log lines since the loop looked last
}

// mutations counts the calls that changed something.
type mutations struct {
	byCall map[string]int
	last   string
}

func newEngine(seed uint64, keepAll bool) *engine {
	return &engine{rng: rand.New(rand.NewPCG(seed, 0x6a6f696e6572)), began: time.Now(), posted: make(chan struct{}, 1),
		trace: trace{all: keepAll}, changes: mutations{byCall: map[string]int{}}, observe: func(any) {}}
}

// timer is something that happens at a time.
type timer struct {
	at  time.Time
	seq int
	do  func()
}

type timerQueue []timer

func (q timerQueue) Len() int { return len(q) }

func (q timerQueue) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].seq < q[j].seq
}

func (q timerQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is for package heap.
func (q *timerQueue) Push(x any) { *q = append(*q, x.(timer)) }

// Pop is for package heap.
func (q *timerQueue) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = timer{}
	*q = (*q)[:len(*q)-1]
	return last
}

// runAfter has something done after d.
func (e *engine) runAfter(d time.Duration, do func()) {
	e.seq++
	heap.Push(&e.queue, timer{time.Now().Add(max(d, 0)), e.seq, do})
}

// drawDuration draws a duration. Its nanoseconds keep any two things from happening at one time, where Go would choose
// between them.
func (e *engine) drawDuration(least, most time.Duration) time.Duration {
	return least + time.Duration(e.rng.Int64N(int64(most-least)+1))
}

func (e *engine) drawInt(least, most int) int64 { return int64(least + e.rng.IntN(most-least+1)) }

// troubleChance is a chance while things go wrong.
func (e *engine) troubleChance(p float64) bool { return e.trouble && e.drawChance(p) }

// drawChance is true with the probability given.
func (e *engine) drawChance(p float64) bool { return e.rng.Float64() < p }

// runUntil goes on until the virtual time given, or until something is wrong.
func (e *engine) runUntil(end time.Time, admit func(*portRequest)) {
	for len(e.bad) == 0 {
		synctest.Wait()
		e.admitPosted(admit)
		next := end
		if len(e.queue) > 0 && e.queue[0].at.Before(end) {
			next = e.queue[0].at
		}
		if d := time.Until(next); d > 0 {
			t := time.NewTimer(d)
			select {
			case <-t.C:
			case <-e.posted:
				t.Stop()
			}
			continue // whatever was posted meanwhile comes first
		}
		if !next.Before(end) {
			return
		}
		heap.Pop(&e.queue).(timer).do()
	}
}

// admitPosted admits what was posted, in sorted order.
func (e *engine) admitPosted(admit func(*portRequest)) {
	e.mu.Lock()
	batch, said := e.arrived, e.said
	e.arrived, e.said = nil, nil
	e.mu.Unlock()
	slices.Sort(said)
	for _, line := range said {
		e.addTrace("%s", line)
	}
	slices.SortStableFunc(batch, func(a, b *portRequest) int {
		return cmp.Or(cmp.Compare(a.inv.id, b.inv.id), cmp.Compare(a.call, b.call), cmp.Compare(a.key, b.key))
	})
	for _, r := range batch {
		admit(r)
	}
}

// postRequest hands a request to the loop. It is false when the process of the invocation is dead.
func (e *engine) postRequest(r *portRequest) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.inv.dead {
		return false
	}
	e.arrived = append(e.arrived, r)
	select {
	case e.posted <- struct{}{}:
	default:
	}
	return true
}

// abandonRequest says that nobody waits for the answer of a request.
func (e *engine) abandonRequest(r *portRequest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.left = true
}

func (e *engine) isAbandoned(r *portRequest) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return r.left || r.inv.dead
}

// addTrace adds a line to the trace.
func (e *engine) addTrace(format string, args ...any) {
	e.trace.addLine(fmt.Sprintf("%12.6f ", time.Since(e.began).Seconds()) + fmt.Sprintf(format, args...))
}

// addViolation says that an invariant is broken. The run ends with the first ones.
func (e *engine) addViolation(invariant, format string, args ...any) {
	v := Violation{Invariant: invariant, What: fmt.Sprintf(format, args...), At: time.Since(e.began)}
	e.bad = append(e.bad, v)
	e.addTrace("VIOLATION %s: %s", v.Invariant, v.What)
}

// toSecond is the time as Kubernetes stores it.
func (e *engine) toSecond() time.Time { return time.Now().Truncate(time.Second) }

// countMutation counts a call that changed something.
func (e *engine) countMutation(call string) {
	e.changes.byCall[call]++
	e.changes.last = fmt.Sprintf("%s at %s", call, time.Since(e.began))
}

// mutatedBy is countMutation for changes that somebody else may have made.
func (e *engine) mutatedBy(by *invocation, call string) {
	if by != nil {
		e.countMutation(call)
	}
}

// totalMutations returns the number of calls that changed something so far.
func (e *engine) totalMutations() (n int) {
	for _, c := range e.changes.byCall {
		n += c
	}
	return n
}
