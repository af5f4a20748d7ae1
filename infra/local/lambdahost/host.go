package lambdahost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"joiner.sh/infra/local/lambdahost/assembly"
	"joiner.sh/infra/local/lambdahost/confine"
)

// maxProcesses stands for the account's concurrency: what functions without reserved concurrency may use together.
const maxProcesses = 128

// Options says what to run and what it may reach.
type Options struct {
	Assembly *assembly.Assembly
	CloudURL string // AWS_ENDPOINT_URL of the functions
	// Credentials gives keys of a role for one new process. It is called again for every process.
	Credentials func(ctx context.Context, roleARN, sessionName string) (key, secret, token string, err error)
	// SendToQueue puts a dead event into a queue. An error loses the event, as in AWS, and is counted.
	SendToQueue func(queueARN string, body []byte) error
	Log         io.Writer     // log lines of the functions and of the host; written to by one goroutine at a time
	Minute      time.Duration // how long a minute of schedules and retries lasts; 0: a minute
	Paused      bool          // start with schedules paused
	// Confine holds every process to the memory and the processor share that Lambda gives a function of its size.
	Confine  bool
	OnReport func(Report) // is told the end of every invocation; nil for nobody
}

// Host is the running assembly.
type Host struct {
	*EventBus
	options   Options
	functions []*function
	mappings  []*mapping
	doors     []*door
	scratch   string
	Confined  string // how processes are confined; empty: they are not
	log       *logger
	spawner   *spawner
	started   time.Time

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	queued *gauge
	slots  chan struct{} // of functions without reserved concurrency

	closing sync.Once
	closed  error

	mu     sync.Mutex
	ledger map[string]*FunctionStats // by function
}

// LoadAssembly reads a cloud assembly for the local environment's account and region, which also stand in for unknown
// ones.
func LoadAssembly(assemblyDir string) (*assembly.Assembly, error) {
	return assembly.Load(assemblyDir, assembly.Place{Account: "111122223333", Region: "us-west-2"})
}

// StartHost checks the assembly and starts its schedules; processes start with the first invocation. The caller must
// Close it.
func StartHost(ctx context.Context, o Options) (*Host, error) {
	if o.Assembly == nil || o.Credentials == nil || o.SendToQueue == nil {
		return nil, errors.New("start host: assembly, credentials and queue are required")
	}
	if o.Minute == 0 {
		o.Minute = time.Minute
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	scratch, err := os.MkdirTemp("", "joiner-host-")
	if err != nil {
		return nil, fmt.Errorf("start host: %w", err)
	}
	h := &Host{
		options: o, scratch: scratch, log: &logger{out: o.Log}, started: time.Now(),
		queued: newGauge(), slots: make(chan struct{}, maxProcesses),
		ledger: map[string]*FunctionStats{},
	}
	h.EventBus = &EventBus{host: h, paused: o.Paused}
	if o.Confine {
		h.Confined = confine.DetectKind()
	}
	h.ctx, h.cancel = context.WithCancel(ctx)
	if err := h.prepareFunctions(); err != nil {
		h.cancel()
		return nil, errors.Join(fmt.Errorf("start host: %w", err), os.RemoveAll(scratch))
	}
	h.spawner = startSpawner()
	if err := h.openDoors(); err != nil {
		return nil, errors.Join(fmt.Errorf("start host: %w", err), h.Close())
	}
	for _, m := range h.mappings {
		h.work.Go(func() { h.pollMapping(m) })
	}
	for _, r := range h.rules {
		if r.next != nil && r.enabled {
			h.work.Go(func() { h.keepTime(r) })
		}
	}
	return h, nil
}

// prepareFunctions turns the assembly into functions and rules, and refuses what cannot run here.
func (h *Host) prepareFunctions() error {
	var problems []error
	for _, f := range h.options.Assembly.Functions {
		made, err := h.newFunction(f)
		problems = append(problems, err)
		h.functions = append(h.functions, made)
	}
	for _, m := range h.options.Assembly.Mappings {
		made, err := h.newMapping(m)
		problems = append(problems, err)
		h.mappings = append(h.mappings, made)
	}
	for _, r := range h.options.Assembly.Rules {
		made, err := newRule(r)
		problems = append(problems, err)
		h.rules = append(h.rules, made)
	}
	for _, s := range h.options.Assembly.Schedules {
		made, err := newSchedule(s)
		problems = append(problems, err)
		h.rules = append(h.rules, made)
	}
	return errors.Join(problems...)
}

// Close stops schedules, drops what is queued, kills every process and waits until all of that is over. A second Close
// does nothing more.
func (h *Host) Close() error {
	h.closing.Do(func() { h.closed = h.closeAll() })
	return h.closed
}

func (h *Host) closeAll() error {
	h.cancel()
	for _, d := range h.doors {
		_ = d.server.Close() // nothing comes of a listener that does not close
	}
	for _, f := range h.functions {
		f.killSandboxes()
	}
	h.work.Wait()
	for _, f := range h.functions {
		f.killSandboxes() // what an invocation started while we were closing
		f.waitAll()
	}
	h.spawner.stopSpawner()
	if err := os.RemoveAll(h.scratch); err != nil {
		return fmt.Errorf("close host: %w", err)
	}
	return nil
}

// KillFunction ends the running processes of a function with SIGKILL, waits for that and says how many there were. What
// they were doing fails as in Lambda when a runtime exits.
func (h *Host) KillFunction(name string) (int, error) {
	f, err := h.findFunction(name)
	if err != nil {
		return 0, err
	}
	n := f.killSandboxes()
	f.waitAll()
	return n, nil
}

// WaitIdle returns when no asynchronous event or message of a mapped queue is waiting or worked on, or with the
// context's error.
func (h *Host) WaitIdle(ctx context.Context) error {
	select {
	case <-h.queued.zeroReached():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for queued events: %w", ctx.Err())
	}
}

// scaleTime turns Lambda's or EventBridge's time into the host's.
func (h *Host) scaleTime(d time.Duration) time.Duration {
	return time.Duration(float64(d) * h.options.Minute.Seconds() / time.Minute.Seconds())
}

// pauseFor waits, or reports false when the host is closing.
func (h *Host) pauseFor(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-h.ctx.Done():
		return false
	}
}

func (h *Host) findFunction(name string) (*function, error) {
	if want := h.options.Assembly.FindFunction(name); want != nil {
		for _, f := range h.functions {
			if f.ARN == want.ARN {
				return f, nil
			}
		}
	}
	return nil, &Error{Status: 404, Code: "ResourceNotFoundException", Message: "Function not found: " + name}
}
