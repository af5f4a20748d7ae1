package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	leaseEvery  = 10 * time.Second
	statusEvery = 5 * time.Minute
	watchFor    = int64(3600) // seconds
)

// kubelets play those of the nodes that were filled.
type kubelets struct {
	*cluster
	beating atomic.Bool
	failed  atomic.Pointer[error] // the last thing that did not work
}

// runKubelets plays them until the context ends.
func (k *kubelets) runKubelets(ctx context.Context) {
	go k.sendHeartbeats(ctx)
	for ctx.Err() == nil {
		if err := k.watchPods(ctx); err != nil && ctx.Err() == nil {
			k.failed.Store(&err)
		}
	}
}

// watchPods runs pods that come to the nodes, and ends those that are deleted.
func (k *kubelets) watchPods(ctx context.Context) error {
	seconds := watchFor
	w, err := k.Kube.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!=",
		ResourceVersion: k.seenUntil(ctx), TimeoutSeconds: &seconds})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		p, ok := e.Object.(*corev1.Pod)
		if !ok || !k.filled[p.Spec.NodeName] {
			continue
		}
		if err := k.handlePod(ctx, p); err != nil && !apierrors.IsNotFound(err) {
			k.failed.Store(&err)
		}
	}
	return nil
}

// seenUntil is a resourceVersion of now.
func (k *kubelets) seenUntil(ctx context.Context) string {
	list, err := k.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return ""
	}
	return list.ResourceVersion
}

func (k *kubelets) handlePod(ctx context.Context, p *corev1.Pod) error {
	pods := k.Kube.CoreV1().Pods(p.Namespace)
	switch {
	case p.DeletionTimestamp != nil:
		at := int64(0)
		return pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &at,
			Preconditions: &metav1.Preconditions{UID: &p.UID}})
	case p.Status.Phase == corev1.PodPending:
		now := metav1.Now()
		s := newApp("", p.Name, 1, 1).newPod(1, p.Spec.NodeName, now).Status
		s.QOSClass = "" // which the API server has set
		patch, err := json.Marshal(map[string]any{"status": s})
		if err != nil {
			return err
		}
		_, err = pods.Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	}
	return nil
}

// sendHeartbeats renews each lease every ten seconds, and writes each status every five minutes, spread evenly, while
// they are on.
func (k *kubelets) sendHeartbeats(ctx context.Context) {
	const steps = 20 // of the time between two renewals
	for step := 0; waitFor(ctx, leaseEvery/steps) == nil; step++ {
		if !k.beating.Load() {
			continue
		}
		for i := step % steps; i < len(k.nodes); i += steps {
			if err := k.renewLease(ctx, k.nodes[i]); err != nil && ctx.Err() == nil {
				k.failed.Store(&err)
			}
		}
		rounds := int(statusEvery / leaseEvery * steps)
		for i := step % rounds; i < len(k.nodes); i += rounds {
			if err := k.writeStatus(ctx, k.nodes[i]); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
				k.failed.Store(&err)
			}
		}
	}
}

// writeStatus is a kubelet's report that all is as before.
func (k *kubelets) writeStatus(ctx context.Context, node string) error {
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":%q}]}}`,
		time.Now().UTC().Format(time.RFC3339))
	_, err := k.Kube.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{}, "status")
	return err
}

// replacePods deletes pods evenly, so many percent of all in a minute, until the context ends. Their ReplicaSets make
// others, which the scheduler binds.
func (k *kubelets) replacePods(ctx context.Context, pods, percentPerMinute int) {
	each := time.Minute * 100 / time.Duration(max(1, pods*percentPerMinute))
	victims := k.victimNames(ctx)
	for i := 0; waitFor(ctx, each) == nil && len(victims) > 0; i++ {
		v := victims[i%len(victims)]
		if err := k.Kube.CoreV1().Pods(v.Namespace).Delete(ctx, v.Name, metav1.DeleteOptions{}); err != nil &&
			!apierrors.IsNotFound(err) && ctx.Err() == nil {
			k.failed.Store(&err)
		}
	}
}

// victimNames are the names of some pods of apps.
func (k *kubelets) victimNames(ctx context.Context) (names []types.NamespacedName) {
	list, err := k.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 2000,
		LabelSelector: "app.kubernetes.io/part-of=scale,app.kubernetes.io/name notin (daemon-0,daemon-1,daemon-2,daemon-3)"})
	if err != nil {
		k.failed.Store(&err)
		return nil
	}
	for _, p := range list.Items {
		names = append(names, types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
	}
	return names
}
