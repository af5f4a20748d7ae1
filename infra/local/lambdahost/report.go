package lambdahost

import (
	"strings"
	"time"

	"joiner.sh/infra/local/lambdahost/confine"
)

// Report is what one invocation took.
type Report struct {
	Function string // short name
	MemoryMB int64  // that it may have
	Cold     bool
	Init     time.Duration // of a cold one, before it took the event
	Took     time.Duration // from the event to the answer
	CPU      time.Duration // of the process, its init included, in steps of 10 ms
	PeakMB   int64         // highest resident set meanwhile; of a process that is gone the one known last
	Status   string        // empty, error or timeout
	Error    string        // what Lambda answers for a failed one
}

// WasKilled reports whether the process was killed, as is one that takes more memory than it has.
func (r Report) WasKilled() bool {
	return r.Status == "error" && strings.Contains(r.Error, "signal: killed")
}

// readUsage is what the process took so far, and lets the peak begin anew.
func (s *sandbox) readUsage() confine.Usage {
	u, err := confine.ReadUsage(s.cmd.Process.Pid)
	if err != nil || s.fn.host.options.OnReport == nil {
		return confine.Usage{}
	}
	s.peakMemory() // keeps the peak of all invocations
	_ = confine.ForgetPeak(s.cmd.Process.Pid)
	return u
}

// completeReport completes the report by what the process took since before.
func (s *sandbox) completeReport(r Report, before confine.Usage) Report {
	u, err := confine.ReadUsage(s.cmd.Process.Pid)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Cold {
		r.Init, before.CPU = s.initTook, 0
	}
	r.PeakMB = s.maxRSS >> 20
	if err == nil {
		r.CPU, r.PeakMB = u.CPU-before.CPU, u.Peak>>20
		return r
	}
	if s.hasExited() {
		state := s.cmd.ProcessState
		r.CPU = state.UserTime() + state.SystemTime() - before.CPU
	}
	return r
}

func (s *sandbox) hasExited() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}
