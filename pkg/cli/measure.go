package cli

import "time"

// Measured is what a piece of work took.
type Measured struct {
	Seconds     float64 // on the clock
	UserSeconds float64 // of CPU, all threads of the program; 0 where the system does not tell
	MaxRSSMiB   float64 // the most memory the program ever had; 0 where the system does not tell
}

// Measure runs the work.
func Measure(work func()) Measured {
	user, start := userSeconds(), time.Now()
	work()
	return Measured{Seconds: time.Since(start).Seconds(), UserSeconds: userSeconds() - user, MaxRSSMiB: maxRSSMiB()}
}
