package lambdahost

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"joiner.sh/infra/local/lambdahost/assembly"
)

// function is one Lambda function with its processes.
type function struct {
	assembly.Function
	host *Host
	dir  string

	mu       sync.Mutex
	answers  map[string]string // of custom resources, by what stands for them
	resolved map[string]string // the environment, with the answers
	version  int               // of it
	running  int               // invocations under way
	idle     []*sandbox        // warm, the most recently used last
	all      []*sandbox        // every process that may still live
}

func (h *Host) newFunction(f assembly.Function) (*function, error) {
	dir, err := codeDir(f.Code, h.scratch, f.Name)
	if err != nil {
		return nil, fmt.Errorf("function %s: %w", f.Name, err)
	}
	if err := checkBinary(filepath.Join(dir, "bootstrap"), f.Architecture); err != nil {
		return nil, fmt.Errorf("function %s: %w", f.Name, err)
	}
	if err := checkEnvironment(f.Name, f.Environment); err != nil {
		return nil, err
	}
	return &function{Function: f, resolved: f.Environment, host: h, dir: dir}, nil
}

// acquirePlace takes a place for one invocation, or reports that the function is throttled.
func (f *function) acquirePlace() (release func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Reserved != nil {
		if f.running >= *f.Reserved {
			return nil, false
		}
		f.running++
		return func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.running--
		}, true
	}
	select {
	case f.host.slots <- struct{}{}:
		return func() { <-f.host.slots }, true
	default:
		return nil, false
	}
}

// runAttempt runs the event once: in a warm process if there is one, else in a new one.
func (f *function) runAttempt(id string, payload []byte, chain lineage) outcome {
	release, ok := f.acquirePlace()
	if !ok {
		f.host.updateStats(f, func(s *FunctionStats) { s.Throttles++ })
		return outcome{throttled: true}
	}
	defer release()
	f.host.updateStats(f, func(s *FunctionStats) { s.running++; s.MostAtOnce = max(s.MostAtOnce, s.running) })
	defer f.host.updateStats(f, func(s *FunctionStats) { s.running-- })
	f.host.updateStats(f, func(s *FunctionStats) {
		s.Invocations++
		s.LongestChain = max(s.LongestChain, chain[f.Name])
	})
	for {
		if f.host.ctx.Err() != nil {
			return outcome{closed: true}
		}
		s, cold, err := f.takeSandbox()
		if err != nil {
			f.host.log.writeLine(f.Short, id, "not started: "+err.Error())
			f.host.updateStats(f, func(s *FunctionStats) { s.Errors++ })
			return outcome{err: err, fault: "Unhandled", status: "error",
				payload: runtimeError(id, "Runtime.Unknown", err.Error())}
		}
		if o, taken := f.useSandbox(s, cold, id, payload, chain); taken {
			return o
		}
	}
}

// useSandbox runs one invocation in the process and puts the process back. False: the process ended before it took the
// event.
func (f *function) useSandbox(s *sandbox, cold bool, id string, payload []byte, chain lineage) (outcome, bool) {
	var o outcome
	taken := true
	began, before := time.Now(), s.readUsage()
	s.out.beginRequest(id)
	if failure, kind := s.awaitInit(cold, id); failure != nil {
		o = outcome{fault: "Unhandled", status: kind, payload: failure}
	} else {
		began = time.Now()
		o, taken = s.deliverCall(&call{id: id, payload: payload, chain: chain, answer: make(chan outcome, 1)})
	}
	if !taken {
		f.dropSandbox(s)
		return outcome{}, false
	}
	took := time.Since(began)
	o.logTail = s.out.endRequest(f.reportLines(s, cold, id, took, o)...)
	if tell := f.host.options.OnReport; tell != nil {
		r := Report{Function: f.Short, MemoryMB: f.MemoryMB, Cold: cold, Took: took, Status: o.status}
		if o.fault != "" {
			r.Error = string(o.payload)
		}
		tell(s.completeReport(r, before))
	}
	f.host.updateStats(f, func(stats *FunctionStats) { stats.addAttempt(s, cold, o) })
	f.giveBack(s)
	return o, true
}

// awaitInit waits for the init phase of a new process.
func (s *sandbox) awaitInit(cold bool, id string) ([]byte, string) {
	if !cold {
		return nil, ""
	}
	return s.awaitReady(id)
}

// reportLines makes the lines that Lambda prints at the end of an invocation.
func (f *function) reportLines(s *sandbox, cold bool, id string, took time.Duration, o outcome) []string {
	var lines []string
	if o.status == "timeout" {
		lines = append(lines, fmt.Sprintf("%s %s Task timed out after %.2f seconds",
			time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), id, took.Seconds()))
	}
	s.mu.Lock()
	initTook := s.initTook
	s.mu.Unlock()
	billed := took
	ending := ""
	if cold && initTook > 0 {
		billed += initTook
		ending = fmt.Sprintf("\tInit Duration: %.2f ms", toMilliseconds(initTook))
	}
	if o.status != "" {
		ending += "\tStatus: " + o.status
	}
	return append(lines, "END RequestId: "+id, fmt.Sprintf(
		"REPORT RequestId: %s\tDuration: %.2f ms\tBilled Duration: %d ms\tMemory Size: %d MB\tMax Memory Used: %d MB%s",
		id, toMilliseconds(took), int64(toMilliseconds(billed))+1, f.MemoryMB, s.peakMemory(), ending))
}

func toMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// takeSandbox gives the warm process used last, or starts one.
func (f *function) takeSandbox() (s *sandbox, cold bool, err error) {
	for s := f.popIdle(); s != nil; s = f.popIdle() {
		if s.isUsable() && f.isCurrent(s) {
			return s, false, nil
		}
		f.dropSandbox(s)
	}
	s, err = f.newSandbox(f.host.ctx)
	if err != nil {
		return nil, false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, s)
	return s, true, nil
}

// isCurrent reports whether the process has the environment of today.
func (f *function) isCurrent(s *sandbox) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.version == f.version
}

func (f *function) popIdle() *sandbox {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.idle) == 0 {
		return nil
	}
	s := f.idle[len(f.idle)-1]
	f.idle = f.idle[:len(f.idle)-1]
	return s
}

// giveBack keeps the process warm, unless it has ended.
func (f *function) giveBack(s *sandbox) {
	if !s.isUsable() {
		f.dropSandbox(s)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.idle = append(f.idle, s)
}

// dropSandbox forgets a process after making sure that it has ended.
func (f *function) dropSandbox(s *sandbox) {
	s.killProcess()
	<-s.exited
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = slices.DeleteFunc(slices.Clone(f.all), func(other *sandbox) bool { return other == s })
}

// killSandboxes ends every process of the function and says how many were alive.
func (f *function) killSandboxes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, s := range f.all {
		if s.isUsable() {
			n++
		}
		s.killProcess()
	}
	return n
}

// waitAll waits for the end of every process.
func (f *function) waitAll() {
	f.mu.Lock()
	all := f.all
	f.mu.Unlock()
	for _, s := range all {
		<-s.exited
	}
}
