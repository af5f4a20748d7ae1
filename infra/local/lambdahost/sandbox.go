package lambdahost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"joiner.sh/infra/local/lambdahost/confine"
)

const (
	initLimit  = 10 * time.Second // Lambda's own limit of the init phase
	maxUseTime = 30 * time.Minute // a process older than this is replaced, so that its credentials are still good
)

// sandbox is one process of a function with the Runtime API it talks to.
type sandbox struct {
	fn       *function
	cmd      *exec.Cmd
	server   *http.Server
	out      *output
	started  time.Time
	version  int              // of the function's environment
	confined *confine.Process // nil: it is not

	calls  chan *call    // taken by the process' next
	ready  chan struct{} // closed by its first next
	exited chan struct{} // closed when it has ended and exitErr is set

	mu       sync.Mutex
	current  *call
	initTook time.Duration
	initErr  []byte
	exitErr  error
	maxRSS   int64 // bytes, as far as known
}

// call is one delivery of one event to one process.
type call struct {
	id       string
	payload  []byte
	chain    lineage // that this invocation ends
	deadline time.Time
	answer   chan outcome // holds the one answer of the process
}

// outcome is what one attempt came to.
type outcome struct {
	payload   []byte
	fault     string // "" or Lambda's function error, Unhandled
	status    string // error type for the log: "", error, timeout
	logTail   []byte
	throttled bool
	closed    bool  // the host is closing
	err       error // the host could not even start the process
}

// newSandbox starts a process of the function. It returns before the process is ready.
func (f *function) newSandbox(ctx context.Context) (*sandbox, error) {
	env, stream, version, err := f.processEnvironment(ctx)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for runtime api: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make log pipe: %w", err), listener.Close())
	}
	s := &sandbox{
		fn: f, started: time.Now(), version: version, out: &output{log: f.host.log, source: f.Short, pipe: read},
		calls: make(chan *call), ready: make(chan struct{}), exited: make(chan struct{}),
	}
	s.cmd = exec.Command(filepath.Join(f.dir, "bootstrap"))
	s.cmd.Dir = f.dir
	s.cmd.Env = slices.Concat(env, []string{"AWS_LAMBDA_RUNTIME_API=" + listener.Addr().String(),
		"AWS_LAMBDA_LOG_STREAM_NAME=" + stream})
	s.cmd.Stdout, s.cmd.Stderr = write, write
	s.server = &http.Server{Handler: s.runtimeAPI(), ReadHeaderTimeout: initLimit}
	if err := f.host.spawner.startCommand(s.cmd); err != nil {
		return nil, errors.Join(fmt.Errorf("start bootstrap: %w", err), listener.Close(), read.Close(), write.Close())
	}
	_ = write.Close() // the process has its own copy
	if kind := f.host.Confined; kind != "" {
		s.confined, err = confine.ConfineProcess(kind, s.cmd.Process.Pid, confine.LambdaLimits(f.MemoryMB))
		if err != nil {
			s.killProcess()
			return nil, errors.Join(err, s.cmd.Wait(), listener.Close(), read.Close())
		}
	}
	go func() { _ = s.server.Serve(listener) }()
	go s.reapProcess()
	return s, nil
}

// reapProcess waits for the end of the process and then closes what belongs to it.
func (s *sandbox) reapProcess() {
	s.out.followPipe()
	err := s.cmd.Wait()
	if s.confined != nil {
		if err := s.confined.Close(); err != nil {
			s.fn.host.log.writeLine(s.fn.Short, "", err.Error())
		}
	}
	s.mu.Lock()
	s.exitErr = err
	s.mu.Unlock()
	_ = s.server.Close()
	_ = s.out.pipe.Close()
	close(s.exited)
}

// killProcess ends the process and its children. It is harmless when the process has ended: reapProcess has not let go
// of the pid before exited is closed, and a group of an ended process is empty.
func (s *sandbox) killProcess() {
	select {
	case <-s.exited:
	default:
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// awaitReady waits for the first next. The error is the payload of a failed init.
func (s *sandbox) awaitReady(id string) (failure []byte, kind string) {
	timer := time.NewTimer(initLimit)
	defer timer.Stop()
	select {
	case <-s.ready:
		return nil, ""
	case <-s.exited:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.initErr != nil {
			return s.initErr, "error"
		}
		return s.exitPayload(id), "error"
	case <-timer.C:
		s.killProcess()
		<-s.exited
		return runtimeError(id, "Sandbox.Timedout", "Init timed out after "+initLimit.String()), "timeout"
	}
}

// deliverCall hands the call over and waits for its answer, the end of the process or the time-out. False: the process
// ended without having taken the call, which may go to another.
func (s *sandbox) deliverCall(c *call) (outcome, bool) {
	limit := s.fn.Timeout
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case s.calls <- c:
	case <-s.exited:
		return outcome{}, false
	case <-timer.C:
		s.killProcess() // it never came back for more after its last answer
		<-s.exited
		return outcome{}, false
	}
	timer.Reset(limit)
	select {
	case o := <-c.answer:
		return o, true
	case <-timer.C:
		s.killProcess()
		<-s.exited
		message := fmt.Sprintf("Task timed out after %.2f seconds", limit.Seconds())
		return outcome{fault: "Unhandled", status: "timeout", payload: runtimeError(c.id, "Sandbox.Timedout", message)},
			true
	case <-s.exited:
		select {
		case o := <-c.answer: // it answered, then ended
			return o, true
		default:
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return outcome{fault: "Unhandled", status: "error", payload: s.exitPayload(c.id)}, true
	}
}

// exitPayload is what Lambda answers for a runtime that is gone. The caller holds the lock.
func (s *sandbox) exitPayload(id string) []byte {
	how := "Runtime exited without providing a reason"
	if s.exitErr != nil {
		how = "Runtime exited with error: " + s.exitErr.Error()
	}
	return runtimeError(id, "Runtime.ExitError", how)
}

func (s *sandbox) isUsable() bool {
	select {
	case <-s.exited:
		return false
	default:
		return time.Since(s.started) < maxUseTime
	}
}

// peakMemory is the process' highest resident set so far, in MiB. What wait(2) tells would not do: it counts the host's
// own memory, which the process shared until it became the function.
func (s *sandbox) peakMemory() int64 {
	u, err := confine.ReadUsage(s.cmd.Process.Pid)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.maxRSS = max(s.maxRSS, u.Peak)
	}
	return s.maxRSS >> 20
}

// processEnvironment is exactly what Lambda gives a process: the template's variables and its own.
func (f *function) processEnvironment(ctx context.Context) (env []string, stream string, version int, err error) {
	key, secret, token, err := f.host.options.Credentials(ctx, f.RoleARN, f.Name)
	if err != nil {
		return nil, "", 0, fmt.Errorf("get credentials of %s: %w", f.RoleARN, err)
	}
	f.mu.Lock()
	given, version := f.resolved, f.version
	f.mu.Unlock()
	if variable := pendingVariable(given); variable != "" {
		return nil, "", 0, errPending(f.Name, variable)
	}
	place := f.host.options.Assembly.Place
	stream = time.Now().UTC().Format("2006/01/02") + "/[$LATEST]" + strings.ReplaceAll(newID(), "-", "")
	own := map[string]string{
		"_HANDLER": f.Handler, "LAMBDA_TASK_ROOT": f.dir, "LAMBDA_RUNTIME_DIR": "/var/runtime",
		"AWS_LAMBDA_FUNCTION_NAME": f.Name, "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.FormatInt(f.MemoryMB, 10),
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/" + f.Name,
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_EXECUTION_ENV":               "AWS_Lambda_" + f.Runtime,
		"AWS_REGION":                      place.Region, "AWS_DEFAULT_REGION": place.Region,
		"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": token,
		"AWS_ENDPOINT_URL": f.host.options.CloudURL,
		"PATH":             "/usr/local/bin:/usr/bin/:/bin:/opt/bin", "LANG": "en_US.UTF-8", "TZ": ":UTC",
		"GOMEMLIMIT": fmt.Sprintf("%dMiB", f.MemoryMB),
	}
	for name, value := range given {
		if !reservedVariable(name) {
			own[name] = value
		}
	}
	for name, value := range own {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env, stream, version, nil
}

// reservedVariable names what Lambda refuses in a template; checkEnvironment refuses it too.
func reservedVariable(name string) bool {
	return slices.Contains([]string{
		"_HANDLER", "_X_AMZN_TRACE_ID", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_EXECUTION_ENV",
		"AWS_LAMBDA_FUNCTION_NAME", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_VERSION",
		"AWS_LAMBDA_INITIALIZATION_TYPE", "AWS_LAMBDA_LOG_GROUP_NAME", "AWS_LAMBDA_LOG_STREAM_NAME",
		"AWS_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
		"AWS_LAMBDA_RUNTIME_API", "LAMBDA_TASK_ROOT", "LAMBDA_RUNTIME_DIR",
	}, name)
}

// checkEnvironment refuses what Lambda would refuse at deployment: reserved names, and more than 4 KB in all.
func checkEnvironment(function string, environment map[string]string) error {
	size := 0
	for name, value := range environment {
		if reservedVariable(name) {
			return fmt.Errorf("function %s: environment variable %s is reserved by Lambda", function, name)
		}
		size += len(name) + len(value)
	}
	if size > 4096 {
		return fmt.Errorf("function %s: environment of %d bytes, Lambda takes 4096", function, size)
	}
	return nil
}
