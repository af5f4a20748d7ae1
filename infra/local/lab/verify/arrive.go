package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/workload"
)

const (
	look = 500 * time.Millisecond // between two looks of those who play the functions
	tell = 5 * time.Second        // between two lines of progress
	// mostFailedPasses is how many looks of lifecycle in a row may fail: on a machine that is busy a list may take
	// longer than the product's client waits.
	mostFailedPasses = 6
)

// awaitVerdicts waits until the scheduler has decided about the pods: they wait for a node before there is one.
func (c *plane) awaitVerdicts(ctx context.Context, pods []*corev1.Pod) error {
	return pollUntil(ctx, fmt.Sprintf("the scheduler to see %d pods", len(pods)),
		func(ctx context.Context) (string, error) {
			list, err := c.CoreV1().Pods(metav1.NamespaceAll).List(ctx,
				metav1.ListOptions{FieldSelector: "spec.nodeName="})
			if err != nil {
				return "", fmt.Errorf("list pending pods: %w", err)
			}
			for i := range list.Items {
				if p := &list.Items[i]; len(p.Spec.SchedulingGates) == 0 && unschedulableMessage(p) == "" {
					return "nothing was said about " + p.Name, nil
				}
			}
			return "", nil
		})
}

// bringNodes lets the nodes come, each in its time, while somebody opens held nodes as the lifecycle function does, and
// waits until the scheduler is done. It returns the seconds from the first node to the last pod that got a place.
func (t *trial) bringNodes(ctx context.Context, list []planned) (float64, error) {
	r := rand.New(rand.NewPCG(t.Seed, 1))
	var g errgroup.Group
	for _, n := range list {
		boot, warm := time.Duration(r.Float64()*float64(t.Boot)), t.Warm+time.Duration(r.Float64()*float64(t.Warm))
		g.Go(func() error { return t.bootNode(ctx, n, boot, warm) })
	}
	here := make(chan error, 1)
	go func() { here <- g.Wait() }()
	began := time.Now()
	left, moved, told, failed := -1, began, began, 0
	for coming := true; ; {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case err := <-here:
			if err != nil {
				return 0, err
			}
			coming, moved = false, time.Now()
		case <-time.After(look):
		}
		held, pending, err := t.openHeld(ctx)
		if err != nil { // a pass of lifecycle may fail too, and the next one makes up for it
			if failed++; failed == mostFailedPasses {
				return 0, err
			}
			moved = time.Now()
			continue
		}
		if failed = 0; pending != left {
			left, moved = pending, time.Now()
		}
		if time.Since(told) > tell {
			told = time.Now()
			t.Log("%s: %d pods wait, %d nodes are held", t.Workload.Name, pending, held)
		}
		if !coming && (pending == 0 && held == 0 || time.Since(moved) > t.Idle) {
			return moved.Sub(began).Seconds(), nil
		}
	}
}

// bootNode boots a node: it registers, its daemons come, it is ready.
func (t *trial) bootNode(ctx context.Context, n planned, boot, warm time.Duration) error {
	objects, err := t.nodeObjects([]workload.Node{n.Node})
	if err != nil {
		return err
	}
	for _, s := range n.startup {
		objects[0].Spec.Taints = append(objects[0].Spec.Taints,
			corev1.Taint{Key: s.Key, Value: s.Value, Effect: corev1.TaintEffect(s.Effect)})
	}
	if !sleepFor(ctx, boot) {
		return ctx.Err()
	}
	if err := t.createNodes(ctx, objects); err != nil {
		return err
	}
	if !sleepFor(ctx, warm) {
		return ctx.Err()
	}
	if err := t.awaitNodes(ctx, objects); err != nil {
		return err
	}
	if err := t.openNodes(ctx, objects); err != nil {
		return err
	}
	t.readied.Store(n.Name, time.Now())
	return nil
}

// openHeld takes the hold off ready nodes as the lifecycle function does, and counts those that are still held and the
// pods that have no node.
func (t *trial) openHeld(ctx context.Context) (held, pending int, err error) {
	list, err := t.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if err != nil {
		return 0, 0, fmt.Errorf("list pending pods: %w", err)
	}
	var pods []cluster.Pod
	for i := range list.Items {
		pods = append(pods, translate.Pod(&list.Items[i]))
	}
	nodes, err := t.joiner.ListNodes(ctx)
	if err != nil {
		return 0, 0, err
	}
	waiting := nomination.CountWaiting(pods)
	for _, n := range nodes {
		h, ok := nomination.TaintOf(cluster.Claim{StartupTaints: n.Taints})
		if !ok {
			_, t.opened[n.Name] = t.readySince(n.Name)
			continue
		}
		var up bool
		n.ReadySince, up = t.readySince(n.Name)
		if !up || nomination.ReleaseReason(h, n, waiting, time.Now()) == "" {
			held++
			continue
		}
		if err := t.joiner.OpenNode(ctx, n); err != nil {
			return 0, 0, err
		}
	}
	return held, len(pods), nil
}

func sleepFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
