package sim

import (
	"cmp"
	"container/heap"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

// eventLoop orders everything that happens. One goroutine, the loop, does all deeds; the goroutines of invocations only
// post requests and wait. Between two deeds the loop lets all of them come to rest, and then takes what they posted in
// sorted order, so that the order of the runtime's scheduler never shows. All chance comes from one generator, drawn
// from by the loop alone.
type eventLoop struct {
	rng   *rand.Rand
	began time.Time
	queue timerQueue
	seq   int
	story eventTrace
	bad   []Violation

	kick chan struct{} // something was posted while the loop slept

	mu      sync.Mutex // what follows is touched by invocations too, never while blocked
	arrived []*portRequest
	said    []string // log lines since the loop looked last
}

func newEngine(seed uint64, keepAll bool) *eventLoop {
	return &eventLoop{rng: rand.New(rand.NewPCG(seed, 0x6a6f696e6572)), began: time.Now(), kick: make(chan struct{}, 1),
		story: eventTrace{all: keepAll}}
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
func (e *eventLoop) runAfter(d time.Duration, do func()) {
	e.seq++
	heap.Push(&e.queue, timer{time.Now().Add(max(d, 0)), e.seq, do})
}

// drawDuration draws a duration. Its nanoseconds keep any two things from happening at one time, where Go would choose
// between them.
func (e *eventLoop) drawDuration(least, most time.Duration) time.Duration {
	return least + time.Duration(e.rng.Int64N(int64(most-least)+1))
}

// drawChance is true with the probability given.
func (e *eventLoop) drawChance(p float64) bool { return e.rng.Float64() < p }

// runUntil goes on until the virtual time given, or until something is wrong.
func (e *eventLoop) runUntil(end time.Time, admit func(*portRequest)) {
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
			case <-e.kick:
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
func (e *eventLoop) admitPosted(admit func(*portRequest)) {
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
func (e *eventLoop) postRequest(r *portRequest) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.inv.dead {
		return false
	}
	e.arrived = append(e.arrived, r)
	select {
	case e.kick <- struct{}{}:
	default:
	}
	return true
}

// abandonRequest says that nobody waits for the answer of a request.
func (e *eventLoop) abandonRequest(r *portRequest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.left = true
}

func (e *eventLoop) isAbandoned(r *portRequest) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return r.left || r.inv.dead
}

// addTrace adds a line to the trace.
func (e *eventLoop) addTrace(format string, args ...any) {
	e.story.addLine(fmt.Sprintf("%12.6f ", time.Since(e.began).Seconds()) + fmt.Sprintf(format, args...))
}

// addViolation says that an invariant is broken. The run ends with the first ones.
func (e *eventLoop) addViolation(invariant, format string, args ...any) {
	v := Violation{Invariant: invariant, What: fmt.Sprintf(format, args...), At: time.Since(e.began)}
	e.bad = append(e.bad, v)
	e.addTrace("VIOLATION %s: %s", v.Invariant, v.What)
}

// Violation is a broken invariant.
type Violation struct {
	Invariant string        // a word or two, the same for the same rule
	What      string        // a sentence with names
	At        time.Duration // since the start of the run
}

// String says it in one line.
func (v Violation) String() string { return fmt.Sprintf("at %s: %s: %s", v.At, v.Invariant, v.What) }

// tail is how many lines of the trace are kept for a violation.
const tail = 120

// eventTrace is the story of a run: its last lines, or all of them, and a sum of all.
type eventTrace struct {
	all   bool
	lines []string
	sum   uint64
	count int
}

func (t *eventTrace) addLine(line string) {
	h := fnv.New64a()
	fmt.Fprint(h, t.sum, line)
	t.sum = h.Sum64()
	t.count++
	t.lines = append(t.lines, line)
	if !t.all && len(t.lines) > 4*tail {
		t.lines = append([]string(nil), t.lines[len(t.lines)-tail:]...)
	}
}

func (t *eventTrace) asText() string {
	lines := t.lines
	if !t.all && len(lines) > tail {
		lines = lines[len(lines)-tail:]
	}
	return strings.Join(lines, "\n")
}
