package main

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"joiner.sh/infra/local/lambdahost/confine"
)

// waitingPods selects the pods of bursts.
const waitingPods = "scale=waiting"

// markWatch notes when objects were marked: waiting pods by kube-scheduler, as without room on any node, or NodeClaims
// for deletion.
type markWatch struct {
	watch    watch.Interface
	isMarked func(metav1.Object) bool
	ended    chan struct{}
	seen     map[string]bool
	last     time.Time // when the last of them was marked first
}

// watchMarkedPods watches the waiting pods from now on, until stopWatching is called.
func (c *cluster) watchMarkedPods(ctx context.Context) (*markWatch, error) {
	pods := c.Kube.CoreV1().Pods(namespace)
	now, err := pods.List(ctx, metav1.ListOptions{LabelSelector: waitingPods, Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("list waiting pods: %w", err)
	}
	return startMarkWatch(ctx, now.ResourceVersion, isUnschedulable,
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = waitingPods
			return pods.Watch(ctx, o)
		})
}

// watchDeletedClaims watches the NodeClaims of the instances from now on, until stopWatching is called.
func (c *cluster) watchDeletedClaims(ctx context.Context, instances []string) (*markWatch, error) {
	claims := c.Kube.Dynamic.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1",
		Resource: "nodeclaims"})
	now, err := claims.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("list NodeClaims: %w", err)
	}
	isMarked := func(o metav1.Object) bool {
		claim, ok := o.(*unstructured.Unstructured)
		if !ok || claim.GetDeletionTimestamp() == nil {
			return false
		}
		id, _, _ := unstructured.NestedString(claim.Object, "status", "providerID")
		return slices.Contains(instances, path.Base(id))
	}
	return startMarkWatch(ctx, now.GetResourceVersion(), isMarked,
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return claims.Watch(ctx, o) })
}

// startMarkWatch watches from the resourceVersion on. A watch that a busy API server ends goes on from there.
func startMarkWatch(ctx context.Context, version string, isMarked func(metav1.Object) bool,
	from cache.WatchFuncWithContext) (*markWatch, error) {
	w, err := watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{WatchFuncWithContext: from})
	if err != nil {
		return nil, fmt.Errorf("watch what is marked: %w", err)
	}
	m := &markWatch{watch: w, isMarked: isMarked, ended: make(chan struct{}), seen: map[string]bool{}}
	go m.noteEvents()
	return m, nil
}

func (m *markWatch) noteEvents() {
	defer close(m.ended)
	for e := range m.watch.ResultChan() {
		if o, ok := e.Object.(metav1.Object); ok && m.isMarked(o) && !m.seen[o.GetName()] {
			m.seen[o.GetName()], m.last = true, time.Now()
		}
	}
}

func isUnschedulable(o metav1.Object) bool {
	p, ok := o.(*corev1.Pod)
	return ok && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
			c.Reason == corev1.PodReasonUnschedulable
	})
}

// stopWatching ends the watch and returns how many seconds after the time given the last object was marked, 0 if none
// was.
func (m *markWatch) stopWatching(since time.Time) float64 {
	m.watch.Stop()
	<-m.ended
	if m.last.IsZero() {
		return 0
	}
	return m.last.Sub(since).Seconds()
}

// planeCPU returns the processor time that the control plane has taken, in seconds, 0 where the system does not tell.
func (c *cluster) planeCPU() float64 {
	u, err := confine.ReadUsage(c.Plane.State().PID)
	if err != nil {
		return 0
	}
	return u.CPU.Seconds()
}

// endProcesses has functions start cold.
func (m *measured) endProcesses(functions ...string) error {
	for _, f := range functions {
		if _, err := m.Host.KillFunction(m.FunctionName(f)); err != nil {
			return err
		}
	}
	return nil
}
