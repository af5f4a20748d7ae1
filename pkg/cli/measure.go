package cli

import (
	"runtime"
	"time"

	"joiner.sh/pkg/workload"
)

// MeasuredWork is the time and memory that a piece of work took.
type MeasuredWork struct {
	Seconds     float64 // on the clock
	UserSeconds float64 // of CPU, all threads of the program; 0 where the system does not tell
	MaxRSSMiB   float64 // the most memory the program ever had; 0 where the system does not tell
	Allocations uint64  // objects on the heap, of all threads of the program
}

// MeasureWork runs the work.
func MeasureWork(work func()) MeasuredWork {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	user, start := userSeconds(), time.Now()
	work()
	took := MeasuredWork{Seconds: time.Since(start).Seconds(), UserSeconds: userSeconds() - user, MaxRSSMiB: maxRSSMiB()}
	runtime.ReadMemStats(&after)
	took.Allocations = after.Mallocs - before.Mallocs
	return took
}

// NoteIn notes in the placement what making it took.
func (m MeasuredWork) NoteIn(p *workload.Placement) {
	p.PlanSeconds, p.PlanUserSeconds, p.MaxRSSMiB, p.Allocations = m.Seconds, m.UserSeconds, m.MaxRSSMiB, m.Allocations
}
