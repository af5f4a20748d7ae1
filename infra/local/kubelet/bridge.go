package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	retryEvery   = 500 * time.Millisecond
	answerWithin = 10 * time.Second // of one step: a request or two
)

// Instance is what the bridge must know of an EC2 instance. State is EC2's word.
type Instance struct {
	ID             string
	Type           string
	Zone           string
	Lifecycle      string // spot or on-demand
	PrivateDNS     string // the name of the node
	PrivateIP      string
	UserData       string // decoded, as the instance's metadata service gives it
	State          string
	SecurityGroups []string
	ProfileName    string
	ImageID        string
	RootGiB        int64 // size of the volume for pods; 0: 20
}

// Behavior is how one instance's way into the cluster goes wrong. The zero value is a good one.
type Behavior struct {
	NeverJoin  bool
	Late       time.Duration // added to the boot delay
	NeverReady bool          // registers, but its network never comes up
	Unapproved bool          // nobody approves its request for a serving certificate
	// DRA says that its devices are for DRA drivers to publish, and that no device plugin offers them.
	DRA    bool
	Slices []Slice // that these publish
}

// Agent is something on every node that takes off a startup taint when it has done its part.
type Agent struct {
	TaintKey string
	After    time.Duration // counted from the end of the cloud provider's part
}

// Options says where nodes go and how fast.
type Options struct {
	Config *rest.Config // with the rights of system:masters, because it impersonates kubelets
	// Cluster is what user data must name to reach the API server.
	Cluster Cluster
	Region  string
	ZoneID  func(zone string) string // nil: no zone-id label
	// Facts gives the hardware of a type; false keeps the instance from joining.
	Facts func(instanceType string) (Facts, bool)
	// Boot does what the instance does before its kubelet starts, and stands for EKS' answer to its role; an error
	// keeps it out. Nil: nothing.
	Boot     func(Instance) error
	Behavior func(Instance) Behavior // asked when an instance runs; nil: all good
	Agents   []Agent
	// ServingFor is how long the serving certificates last that kubelets ask for, 45 days on EKS, 10 minutes at least;
	// 0: kubelets have none.
	ServingFor  time.Duration
	BootDelay   time.Duration // from running to the kubelet's registration
	DeleteDelay time.Duration // from terminated to the end of the Node
	// CollectPods force-deletes the pods of a deleted Node at once. Without it the controller-manager's pod garbage
	// collector does, about a minute later.
	CollectPods bool
	Log         io.Writer // one line for each step and each failure; nil: none
}

// Bridge follows instances until it is closed.
type Bridge struct {
	options Options
	admin   kubernetes.Interface
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup

	mu        sync.Mutex
	followed  map[string]*followed
	failures  map[string]string
	disks     map[string]*disk // of instances with a serving certificate
	behavior  func(Instance) Behavior
	logFailed bool
}

// followed is one instance with the states that wait to be acted on.
type followed struct {
	queue []Instance
	last  string // latest state announced
	busy  bool
	stop  context.CancelFunc // ends what is done for the state before
}

// NewBridge makes a bridge. The caller must Close it.
func NewBridge(ctx context.Context, o Options) (*Bridge, error) {
	if o.Config == nil || o.Facts == nil || o.Cluster.Name == "" {
		return nil, errors.New("make kubelet bridge: config, facts and cluster are required")
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	o.Config = rest.CopyConfig(o.Config)
	o.Config.QPS, o.Config.Burst = 200, 400
	admin, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("make kubelet bridge: %w", err)
	}
	b := &Bridge{
		options: o, admin: admin, behavior: o.Behavior, followed: map[string]*followed{}, failures: map[string]string{},
		disks: map[string]*disk{},
	}
	b.ctx, b.cancel = context.WithCancel(ctx)
	return b, nil
}

// Close stops following. Nodes stay as they are.
func (b *Bridge) Close() {
	b.cancel()
	b.work.Wait()
}

// SetBehavior sets how instances that run from now on behave; nil: all good.
func (b *Bridge) SetBehavior(f func(Instance) Behavior) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.behavior = f
}

// JoinFailures says for each instance that did not become a node why not.
func (b *Bridge) JoinFailures() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.failures)
}

// AnnounceInstance tells the state of an instance. It returns at once; the states of one instance are acted on in
// order, and a state ends what is still being done for the one before. A state announced twice in a row counts once.
func (b *Bridge) AnnounceInstance(i Instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.followed[i.ID]
	if f == nil {
		f = &followed{stop: func() {}}
		b.followed[i.ID] = f
	}
	if f.last == i.State || b.ctx.Err() != nil {
		return
	}
	f.last = i.State
	f.queue = append(f.queue, i)
	f.stop()
	if !f.busy {
		f.busy = true
		b.work.Go(func() { b.followInstance(f) })
	}
}

// followInstance acts on the queued states of one instance.
func (b *Bridge) followInstance(f *followed) {
	for {
		b.mu.Lock()
		if len(f.queue) == 0 {
			f.busy = false
			b.mu.Unlock()
			return
		}
		i := f.queue[0]
		f.queue = f.queue[1:]
		ctx, cancel := context.WithCancel(b.ctx)
		f.stop = cancel
		if len(f.queue) > 0 && i.State == "running" {
			cancel() // it is over already
		}
		b.mu.Unlock()
		b.handleState(ctx, i)
		cancel()
	}
}

// handleState does what a state of an instance means for its Node.
func (b *Bridge) handleState(ctx context.Context, i Instance) {
	var err error
	if i.State != "running" {
		b.endServing(i)
	}
	switch i.State {
	case "running":
		if err = b.joinCluster(ctx, i); err != nil && ctx.Err() == nil {
			b.mu.Lock()
			b.failures[i.ID] = err.Error()
			b.mu.Unlock()
		}
	case "stopping", "shutting-down":
		err = b.markNotReady(ctx, i, false)
	case "stopped":
		err = b.markNotReady(ctx, i, true)
	case "terminated":
		// The Node must go even when this host is told nothing else in between, so only the bridge's end stops it.
		err = b.deleteNode(b.ctx, i)
	}
	if err != nil && ctx.Err() == nil {
		b.logLine(i, err.Error())
	}
}

func (b *Bridge) logLine(i Instance, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.logFailed {
		return
	}
	if _, err := fmt.Fprintf(b.options.Log, "node %s (%s %s %s): %s\n", i.PrivateDNS, i.ID, i.Type, i.Zone,
		text); err != nil {
		b.logFailed = true
	}
}

// waitFor waits, or reports false when the state is over.
func waitFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// retryRequest repeats what the API server could not do just now, as kubelets and controllers do. What it refuses stays
// refused. The end of the state keeps a request from being made, and lets one that is under way have its answer:
// client-go logs those that are cut off.
func retryRequest(ctx context.Context, do func(context.Context) error) error {
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := boundRequest(ctx, do)
		if err == nil || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) ||
			apierrors.IsBadRequest(err) {
			return err
		}
		if !waitFor(ctx, retryEvery) {
			return err
		}
	}
}

func boundRequest(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
	defer cancel()
	return do(ctx)
}

// networkDown is the condition of a kubelet whose network plugin does not come up.
func networkDown() corev1.NodeCondition {
	return corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady",
		Message: "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized",
	}
}
