package cli

import "time"

// MeasuredWork is what a piece of work took.
type MeasuredWork struct {
	Seconds     float64 // on the clock
	UserSeconds float64 // of CPU, all threads of the program; 0 where the system does not tell
	MaxRSSMiB   float64 // the most memory the program ever had; 0 where the system does not tell
}

// MeasureWork runs the work.
func MeasureWork(work func()) MeasuredWork {
	user, start := userSeconds(), time.Now()
	work()
	return MeasuredWork{Seconds: time.Since(start).Seconds(), UserSeconds: userSeconds() - user, MaxRSSMiB: maxRSSMiB()}
}
