// Command joiner-plane is a Kubernetes control plane in one process, for a developer's machine and for tests.
//
// It knows how to start etcd, kube-apiserver, kube-scheduler, kube-controller-manager and kwok (fake kubelets), all
// from their Go modules, on loopback ports, with certificates it makes itself and RBAC on. It refuses to know
// anything of AWS or of Joiner: bearer tokens are judged by the webhook it is given, nodes are made by others.
// Its data is disposable: every start is an empty cluster, and it ends without saving anything.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// options are what the command line says.
type options struct {
	dir          string
	tokenWebhook string
	port         int
	parentPID    int
	nodeGrace    time.Duration
	kwok         bool
	controllers  string
	audit        bool
	removeDir    bool
}

func main() {
	o, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "joiner-plane:", err)
		os.Exit(2)
	}
	r, err := openRun(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "joiner-plane:", err)
		os.Exit(1)
	}
	os.Exit(r.untilEnded())
}

func parseOptions(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("joiner-plane", flag.ContinueOnError)
	fs.StringVar(&o.dir, "dir", "", "directory for everything the plane writes (required; emptied of an earlier plane's data)")
	fs.StringVar(&o.tokenWebhook, "token-webhook", "",
		"URL that answers TokenReviews for bearer tokens; need not answer yet")
	fs.IntVar(&o.port, "port", 0, "loopback port of the API server; 0 takes a free one")
	fs.IntVar(&o.parentPID, "parent-pid", 0, "end when the process of this id ends")
	fs.DurationVar(&o.nodeGrace, "node-monitor-grace-period", 0,
		"how long a node may be silent before it is NotReady; 0 leaves Kubernetes' default")
	fs.BoolVar(&o.kwok, "kwok", true, "play the kubelet of nodes annotated kwok.x-k8s.io/node=fake")
	fs.StringVar(&o.controllers, "controllers", "*,-nodeipam,-route,-service-lb-controller,-node-route-controller,-cloud-node-lifecycle-controller",
		"controllers of kube-controller-manager that run, as its flag of the same name has them")
	fs.BoolVar(&o.audit, "audit", false, "write who asked the API server for what, one JSON line for each request of others than Kubernetes itself")
	fs.BoolVar(&o.removeDir, "remove-dir", false, "remove --dir when the plane ends")
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	if o.dir == "" {
		return options{}, errors.New("--dir is required")
	}
	if fs.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return options{}, fmt.Errorf("resolve --dir: %w", err)
	}
	o.dir = dir
	return o, nil
}

// untilEnded starts the plane and returns the exit code once a signal, the parent's end or a broken component ends it.
func (r *run) untilEnded() int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	orphaned := watchParent(r.options.parentPID)
	started := make(chan error, 1)
	go func() { started <- r.startParts(context.Background()) }()
	for {
		select {
		case s := <-signals:
			r.printProgress("ended by %s", s)
			r.cleanUp()
			return 0
		case <-orphaned:
			r.printProgress("ended because process %d ended", r.options.parentPID)
			r.cleanUp()
			return 0
		case err := <-r.broken:
			return r.giveUp(err)
		case err := <-started:
			if err != nil {
				return r.giveUp(err)
			}
			started = nil
		}
	}
}

func (r *run) giveUp(err error) int {
	r.printProgress("error: %v (log: %s)", err, r.logFile())
	_ = os.Remove(r.filePath(stateFile)) // a stale state file would name a dead process
	return 1
}
