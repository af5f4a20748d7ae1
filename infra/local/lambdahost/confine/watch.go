package confine

import (
	"os"
	"strconv"
	"syscall"
	"time"
)

const (
	lookEvery = 10 * time.Millisecond
	// a process that was stopped for a while may run on for so long at once
	mostCredit = 100 * time.Millisecond
)

// watchProcess keeps the process to the limits by signals until stop is closed or the process has ended.
func watchProcess(pid int, l Limits, stop <-chan struct{}) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last, used, stopped := time.Now(), time.Duration(0), false
	credit := mostCredit
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		u, err := ReadUsage(pid)
		if err != nil {
			return // it has ended
		}
		if u.Resident > l.MemoryBytes {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			return
		}
		now := time.Now()
		credit = nextCredit(credit, now.Sub(last), u.CPU-used, l.Processors)
		last, used = now, u.CPU
		if over := credit < 0; over != stopped {
			stopped = over
			_ = syscall.Kill(pid, map[bool]syscall.Signal{true: syscall.SIGSTOP, false: syscall.SIGCONT}[over])
		}
	}
}

// nextCredit is what a process may still use after it used so much in the time that passed. Below zero it must wait.
func nextCredit(credit, passed, used time.Duration, processors float64) time.Duration {
	return min(mostCredit, credit+time.Duration(float64(passed)*processors)-used)
}

// Usage is what a process took.
type Usage struct {
	CPU      time.Duration // since it began, in steps of 10 ms
	Resident int64         // bytes now
	Peak     int64         // bytes at most, since it began or ForgetPeak
}

// ForgetPeak lets the peak of the process begin anew.
func ForgetPeak(pid int) error {
	return os.WriteFile("/proc/"+strconv.Itoa(pid)+"/clear_refs", []byte("5"), 0o600)
}
