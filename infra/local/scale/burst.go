package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"joiner.sh/infra/local/lambdahost/confine"
)

// waitingPods selects the pods of bursts.
const waitingPods = "scale=waiting"

// markedPods notes when kube-scheduler said of waiting pods that no node has room for them.
type markedPods struct {
	watch watch.Interface
	ended chan struct{}
	seen  map[string]bool
	last  time.Time // when the last of them was marked first
}

// watchMarked watches the waiting pods from now on, until stopWatching is called. A watch that a busy API server ends
// goes on from there.
func (c *cluster) watchMarked(ctx context.Context) (*markedPods, error) {
	pods := c.Kube.CoreV1().Pods(namespace)
	now, err := pods.List(ctx, metav1.ListOptions{LabelSelector: waitingPods, Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("list waiting pods: %w", err)
	}
	var from cache.ListWatch
	from.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.LabelSelector = waitingPods
		return pods.Watch(ctx, o)
	}
	w, err := watchtools.NewRetryWatcherWithContext(ctx, now.ResourceVersion, &from)
	if err != nil {
		return nil, fmt.Errorf("watch waiting pods: %w", err)
	}
	m := &markedPods{watch: w, ended: make(chan struct{}), seen: map[string]bool{}}
	go m.noteEvents()
	return m, nil
}

func (m *markedPods) noteEvents() {
	defer close(m.ended)
	for e := range m.watch.ResultChan() {
		if p, ok := e.Object.(*corev1.Pod); ok && isMarked(p) && !m.seen[p.Name] {
			m.seen[p.Name], m.last = true, time.Now()
		}
	}
}

func isMarked(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

// stopWatching ends the watch and returns when the last pod was marked.
func (m *markedPods) stopWatching() time.Time {
	m.watch.Stop()
	<-m.ended
	return m.last
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
