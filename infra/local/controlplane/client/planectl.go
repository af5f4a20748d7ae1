package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	memoryLimit  = "16GiB" // of a plane that lets garbage pile up: 150,000 pods and 5,000 nodes take some 9 of them
	poll         = 20 * time.Millisecond
	stopPatience = 30 * time.Second
	logTail      = 2000 // bytes of the plane's log that an error quotes
	clientQPS    = 1000 // requests per second that RESTConfig allows
	clientBurst  = 2000
)

// Options say how to start a plane.
type Options struct {
	Binary       string        // path of joiner-plane
	Dir          string        // for everything the plane writes; made if missing, an earlier plane's data is removed
	TokenWebhook string        // URL that judges bearer tokens; empty: none but service account tokens are accepted
	Port         int           // of the API server; 0 takes a free one
	NodeGrace    time.Duration // silence after which a node is NotReady; 0 is Kubernetes' default
	WithoutKwok  bool          // no fake kubelets
	Controllers  string        // of kube-controller-manager, as its flag has them; empty is all that need no cloud
	Audit        bool          // the API server writes AuditFile: who asked for what, Kubernetes' own parts left out
	// how much garbage the plane lets pile up (GOGC), below memoryLimit: memory for processor time; 0 is Go's default
	GCPercent int
	Outlive   bool      // the plane goes on when this process ends; otherwise it ends too
	RemoveDir bool      // the plane removes Dir when it ends
	Log       io.Writer // progress, a line per step; nil discards it
}

// Plane is a control plane that was ready when it was started or found. Its methods may be called concurrently.
type Plane struct {
	state  State
	config *rest.Config
}

// StartPlane runs a plane and returns when it is ready. ctx bounds the start only; end the plane with StopPlane. The
// error holds the end of the plane's log.
func StartPlane(ctx context.Context, o Options) (*Plane, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil || o.Dir == "" {
		return nil, fmt.Errorf("start plane: bad directory %q", o.Dir)
	}
	o.Dir = dir
	if err := refuseLiving(dir); err != nil {
		return nil, err
	}
	said := &bytes.Buffer{} // read only after the process ended, when nobody writes it
	cmd := exec.Command(o.Binary, planeArguments(o)...)
	cmd.Stderr = said
	if o.Log != nil {
		cmd.Stderr = io.MultiWriter(said, o.Log)
	}
	if o.GCPercent != 0 {
		cmd.Env = append(os.Environ(), fmt.Sprintf("GOGC=%d", o.GCPercent), "GOMEMLIMIT="+memoryLimit)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interrupt typed at the terminal is ours to handle first
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start plane: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // also reaps it whenever it ends
	for {
		if p, err := findPlane(dir); err == nil {
			return p, nil
		}
		select {
		case err := <-ended:
			return nil, fmt.Errorf("plane ended before it was ready: %w\n%s%s", err, said,
				endOfLog(filepath.Join(dir, LogFile)))
		case <-ctx.Done():
			_ = cmd.Process.Kill()
			err := <-ended
			return nil, fmt.Errorf("wait for the plane: %w (%w)\n%s%s", context.Cause(ctx), err, said,
				endOfLog(filepath.Join(dir, LogFile)))
		case <-time.After(poll):
		}
	}
}

// AttachPlane finds the ready plane that lives in the directory.
func AttachPlane(dir string) (*Plane, error) {
	p, err := findPlane(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("attach: no plane is ready in %s: %w", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	return p, nil
}

func findPlane(dir string) (*Plane, error) {
	s, err := readState(dir)
	if err != nil {
		return nil, err
	}
	if !isRunning(dir) {
		return nil, fmt.Errorf("plane in %s is dead: process %d is gone", dir, s.PID)
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = clientQPS, clientBurst
	return &Plane{state: s, config: config}, nil
}

// State is what the plane said of itself when it became ready.
func (p *Plane) State() State { return p.state }

// RESTConfig is a new client configuration of a member of system:masters.
func (p *Plane) RESTConfig() *rest.Config { return rest.CopyConfig(p.config) }

// KubeconfigPath is the path of a kubeconfig of a member of system:masters.
func (p *Plane) KubeconfigPath() string { return p.state.Kubeconfig }

// ServerURL is the URL of the API server.
func (p *Plane) ServerURL() string { return p.state.Server }

// CA is the PEM of the authority that signed the API server's certificate.
func (p *Plane) CA() []byte { return bytes.Clone(p.state.CAData) }

// StopPlane ends the plane and returns when its process is gone. Stopping a stopped plane is no error.
func (p *Plane) StopPlane() error {
	if !isRunning(p.state.Dir) {
		return nil
	}
	if err := syscall.Kill(p.state.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop plane: %w", err)
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	deadline := time.After(stopPatience)
	for isRunning(p.state.Dir) {
		select {
		case <-tick.C:
		case <-deadline:
			_ = syscall.Kill(p.state.PID, syscall.SIGKILL)
			return fmt.Errorf("stop plane: process %d had to be killed after %s", p.state.PID, stopPatience)
		}
	}
	return nil
}

// isRunning says whether a plane's process holds the directory. Unlike its process id, the lock is never somebody
// else's, and a zombie does not hold it.
func isRunning(dir string) bool {
	file, err := os.Open(filepath.Join(dir, LockFile))
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	return errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// endOfLog is the end of a log for an error message.
func endOfLog(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(data[max(0, len(data)-logTail):])
}

// refuseLiving is an error if a plane lives in the directory, and removes the state of a dead one.
func refuseLiving(dir string) error {
	s, err := readState(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && isRunning(dir) {
		return fmt.Errorf("start plane: process %d already runs one in %s", s.PID, dir)
	}
	if err := os.Remove(filepath.Join(dir, StateFile)); err != nil {
		return fmt.Errorf("remove a dead plane's state: %w", err)
	}
	return nil
}

func planeArguments(o Options) []string {
	args := []string{
		"--dir=" + o.Dir,
		"--port=" + strconv.Itoa(o.Port),
		"--kwok=" + strconv.FormatBool(!o.WithoutKwok),
		"--remove-dir=" + strconv.FormatBool(o.RemoveDir),
	}
	if o.TokenWebhook != "" {
		args = append(args, "--token-webhook="+o.TokenWebhook)
	}
	if o.Controllers != "" {
		args = append(args, "--controllers="+o.Controllers)
	}
	if o.NodeGrace > 0 {
		args = append(args, "--node-monitor-grace-period="+o.NodeGrace.String())
	}
	if o.Audit {
		args = append(args, "--audit")
	}
	if !o.Outlive {
		args = append(args, "--parent-pid="+strconv.Itoa(os.Getpid()))
	}
	return args
}
