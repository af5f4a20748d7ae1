package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"

	"joiner.sh/infra/local/controlplane/client"
)

const (
	stateFile  = client.StateFile
	adminFile  = client.KubeconfigFile
	logName    = client.LogFile
	serviceNet = "10.100.0.0/16" // what EKS gives a cluster whose VPC is not in 10.0.0.0/8
	serviceIP  = "10.100.0.1"    // Service default/kubernetes, the range's first
	dnsIP      = "10.100.0.10"   // Service kube-system/kube-dns, where EKS puts it
)

// auditPolicyFile is where the API server finds what it is to write into the audit log.
const auditPolicyFile = "audit-policy.yaml"

//go:embed audit-policy.yaml
var auditPolicy []byte

// run is one life of the plane.
type run struct {
	options  options
	started  time.Time
	terminal io.Writer // the stderr we were started with; file descriptor 2 is the log from openRun on
	listener net.Listener
	etcdURL  string
	broken   chan error // a component that ended, which none ever should
	lock     *os.File   // held until the process ends
}

// openRun takes the directory for this process, points stderr at the log and reserves the API server's port.
func openRun(o options) (*run, error) {
	r := &run{options: o, started: time.Now(), broken: make(chan error, 8)}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	if err := r.takeDir(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", o.port))
	if err != nil {
		return nil, fmt.Errorf("listen for the API server: %w", err)
	}
	r.listener = listener
	if err := r.redirectStderr(); err != nil {
		return nil, err
	}
	return r, nil
}

// takeDir locks the directory against a second plane and removes what an earlier one left.
func (r *run) takeDir() error {
	lock, err := os.OpenFile(r.filePath(client.LockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open lock: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("another joiner-plane runs in %s: %w", r.options.dir, err)
	}
	r.lock = lock
	for _, name := range []string{stateFile, adminFile, "ca.crt", "etcd", "pki"} {
		if err := os.RemoveAll(r.filePath(name)); err != nil {
			return fmt.Errorf("remove what an earlier plane left: %w", err)
		}
	}
	return nil
}

// redirectStderr makes the log file this process' stderr, so that panics and libraries that know no logger end up
// there too, and keeps the terminal for progress.
func (r *run) redirectStderr() error {
	file, err := os.OpenFile(r.logFile(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = file.Close() }() // descriptor 2 keeps it open
	terminal, err := unix.Dup(2)
	if err != nil {
		return fmt.Errorf("duplicate stderr: %w", err)
	}
	unix.CloseOnExec(terminal)
	r.terminal = os.NewFile(uintptr(terminal), "terminal")
	if err := unix.Dup2(int(file.Fd()), 2); err != nil {
		return fmt.Errorf("redirect stderr: %w", err)
	}
	return nil
}

// startParts brings up every part in turn; it returns once the plane is usable and its state file written.
func (r *run) startParts(ctx context.Context) error {
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged // each component applies the process' one setting
	rest.SetDefaultWarningHandler(rest.NoWarnings{})

	pki, err := newPKI(r.filePath("pki"))
	if err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	if err := r.writeKubeconfigs(pki); err != nil {
		return err
	}
	if err := os.WriteFile(r.filePath(auditPolicyFile), auditPolicy, 0o600); err != nil {
		return fmt.Errorf("write audit policy: %w", err)
	}
	etcdURL, err := r.startEtcd()
	if err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	r.etcdURL = etcdURL
	r.printProgress("etcd answers")

	parts, err := r.parseComponents(etcdURL)
	if err != nil {
		return err
	}
	if err := parts.startAPIServer(ctx, r); err != nil {
		return fmt.Errorf("start kube-apiserver: %w", err)
	}
	client, err := r.newClient("admin")
	if err != nil {
		return err
	}
	if err := waitReadyz(ctx, client); err != nil {
		return err
	}
	r.printProgress("kube-apiserver is ready")

	if err := r.startControllers(ctx, parts); err != nil {
		return err
	}
	if err := createKubeDNS(ctx, client); err != nil {
		return err
	}
	if err := waitServiceAccount(ctx, client); err != nil {
		return err
	}
	return r.writeState(pki)
}

func (r *run) startControllers(ctx context.Context, parts *components) error {
	if err := parts.startScheduler(ctx, r); err != nil {
		return fmt.Errorf("start kube-scheduler: %w", err)
	}
	if err := parts.startControllerManager(ctx, r); err != nil {
		return fmt.Errorf("start kube-controller-manager: %w", err)
	}
	r.printProgress("kube-scheduler and kube-controller-manager run")
	if !r.options.kwok {
		return nil
	}
	if err := startKwok(ctx, r.kubeconfigPath("kwok")); err != nil {
		return fmt.Errorf("start kwok: %w", err)
	}
	r.printProgress("kwok plays the kubelets")
	return nil
}

// writeState writes the state file, which tells everybody else that the plane is ready.
func (r *run) writeState(pki *pki) error {
	seconds := time.Since(r.started).Seconds()
	s := client.State{
		Server:       r.serverURL(),
		Etcd:         r.etcdURL,
		CAData:       pki.ca.certPEM(),
		PID:          os.Getpid(),
		Port:         r.listenPort(),
		Dir:          r.options.dir,
		Kubeconfig:   r.filePath(adminFile),
		ServiceCIDR:  serviceNet,
		ClusterDNS:   dnsIP,
		ReadySeconds: seconds,
	}
	if err := s.WriteFile(r.options.dir); err != nil {
		return err
	}
	r.printProgress("ready in %.1f s: %s", seconds, r.serverURL())
	return nil
}

// inBackground runs a component; its return ends the plane.
func (r *run) inBackground(name string, component func() error) {
	go func() {
		err := component()
		if err == nil {
			err = errors.New("it returned")
		}
		r.broken <- fmt.Errorf("run %s: %w", name, err)
	}()
}

func (r *run) cleanUp() {
	_ = os.Remove(r.filePath(stateFile))
	if !r.options.removeDir {
		return
	}
	// etcd still writes: what it puts back between two passes goes with the next.
	for range 50 {
		if os.RemoveAll(r.options.dir) == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (r *run) newClient(name string) (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", r.kubeconfigPath(name))
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig of %s: %w", name, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client of %s: %w", name, err)
	}
	return client, nil
}

// printProgress tells the terminal, which may be gone: that is no reason to end.
func (r *run) printProgress(format string, args ...any) {
	_, _ = fmt.Fprintf(r.terminal, "plane %4.1f s  %s\n", time.Since(r.started).Seconds(), fmt.Sprintf(format, args...))
}

func (r *run) listenPort() int             { return r.listener.Addr().(*net.TCPAddr).Port }
func (r *run) serverURL() string           { return fmt.Sprintf("https://127.0.0.1:%d", r.listenPort()) }
func (r *run) filePath(name string) string { return filepath.Join(r.options.dir, name) }
func (r *run) logFile() string             { return r.filePath(logName) }
func (r *run) pkiPath(n string) string     { return filepath.Join(r.options.dir, "pki", n) }
func (r *run) kubeconfigPath(n string) string {
	if n == "admin" {
		return r.filePath(adminFile)
	}
	return r.pkiPath(n + ".kubeconfig")
}
