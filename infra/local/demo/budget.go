package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// budget follows every change of an app's pods and remembers the fewest that were available at once. A pod counts until
// it is gone or no longer Ready: one that is shutting down in its grace period does not count.
type budget struct {
	app   string
	least int // that its PodDisruptionBudget demands
	stop  func()
	done  chan struct{}
	end   error // why the watch ended, once it is done

	mu    sync.Mutex
	ready map[types.UID]bool
	low   int
}

func (s *story) followBudget(ctx context.Context, app string, least int) (*budget, error) {
	pods := s.Kube.CoreV1().Pods("default")
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return nil, err
	}
	w, err := watchFrom(ctx, list.ResourceVersion,
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = "app=" + app
			return pods.Watch(ctx, o)
		})
	if err != nil {
		return nil, err
	}
	b := &budget{app: app, least: least, stop: w.Stop, done: make(chan struct{}), ready: map[types.UID]bool{}}
	for i := range list.Items {
		b.ready[list.Items[i].UID] = isAvailable(&list.Items[i])
	}
	b.low = b.countReady()
	go b.followPods(w)
	return b, nil
}

// watchFrom watches from a version on. The API server ends watches as it likes; one that goes on where the last one
// ended misses nothing.
func watchFrom(ctx context.Context, version string, open cache.WatchFuncWithContext) (*watchtools.RetryWatcher, error) {
	return watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{WatchFuncWithContext: open})
}

func (b *budget) followPods(w watch.Interface) {
	defer close(b.done)
	for e := range w.ResultChan() {
		p, ok := e.Object.(*corev1.Pod)
		if e.Type == watch.Bookmark {
			continue
		}
		if !ok {
			b.end = apierrors.FromObject(e.Object)
			return
		}
		b.mu.Lock()
		b.ready[p.UID] = e.Type != watch.Deleted && isAvailable(p)
		b.low = min(b.low, b.countReady())
		b.mu.Unlock()
	}
}

func (b *budget) countReady() (n int) {
	for _, ready := range b.ready {
		if ready {
			n++
		}
	}
	return n
}

// lowestAvailable returns the fewest pods that were available since the start. It fails when that is below the budget
// or when the watch broke.
func (b *budget) lowestAvailable() (int, error) {
	select {
	case <-b.done:
		return 0, errors.Join(fmt.Errorf("the watch of the pods of %s ended, so its budget is not known to hold",
			b.app), b.end)
	default:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.low < b.least {
		return b.low, fmt.Errorf("%s had only %d available pods, its budget demands %d", b.app, b.low, b.least)
	}
	return b.low, nil
}

func isAvailable(p *corev1.Pod) bool { return p.DeletionTimestamp == nil && isReady(p) }
