package kube_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/providers/kube"
)

// runningPods makes pods that run on a node of their own.
func (c env) runningPods(t *testing.T, names ...string) []cluster.Pod {
	t.Helper()
	c.addNode(t, c.name)
	var out []cluster.Pod
	for _, name := range names {
		c.addPod(t, name, c.name, nil)
	}
	for _, name := range names {
		eventually(t, "pod "+name+" to run", func(ctx context.Context) (string, bool) {
			p, err := c.CoreV1().Pods(c.name).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err.Error(), false
			}
			ready := false
			for _, k := range p.Status.Conditions {
				ready = ready || k.Type == corev1.PodReady && k.Status == corev1.ConditionTrue
			}
			if ready {
				out = append(out, cluster.Pod{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)})
			}
			return string(p.Status.Phase), ready
		})
	}
	return out
}

func TestEviction(t *testing.T) {
	c := newEnv(t)
	k, r := c.client(t)
	pods := c.runningPods(t, "a", "b")
	spec := policyv1.PodDisruptionBudgetSpec{MinAvailable: &intstr.IntOrString{IntVal: 2}}
	c.addBudget(t, "first", spec)
	r.take()
	got, err := k.EvictPod(t.Context(), pods[0])
	if err != nil || got.Outcome != cluster.Refused || !strings.Contains(got.Message, "disruption budget") {
		t.Errorf("against its budget: %+v %v, want a refusal that says why", got, err)
	}
	if calls := r.take(); len(calls) != 1 {
		t.Errorf("a refusal cost %v, want one request", calls)
	}
	c.addBudget(t, "second", spec)
	if got, err = k.EvictPod(t.Context(), pods[0]); err != nil || got.Outcome != cluster.Refused || !strings.Contains(got.Message, "multiple PDBs") {
		t.Errorf("with two budgets: %+v %v, want a refusal that says so", got, err)
	}
	if err := c.PolicyV1().PodDisruptionBudgets(c.name).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	stranger := pods[0]
	stranger.UID = "11111111-2222-3333-4444-555555555555"
	if got, err = k.EvictPod(t.Context(), stranger); err != nil || got.Outcome != cluster.Gone {
		t.Errorf("a pod of another UID: %+v %v, want gone", got, err)
	}
	if got, err = k.EvictPod(t.Context(), pods[0]); err != nil || got.Outcome != cluster.Evicted {
		t.Errorf("without a budget: %+v %v, want evicted", got, err)
	}
	none := cluster.Pod{Namespace: c.name, Name: "nobody", UID: "x"}
	if got, err = k.EvictPod(t.Context(), none); err != nil || got.Outcome != cluster.Gone {
		t.Errorf("a pod that does not exist: %+v %v, want gone", got, err)
	}
	if _, err := c.CoreV1().Pods(c.name).Get(t.Context(), "b", metav1.GetOptions{}); err != nil {
		t.Errorf("the other pod: %v", err)
	}
}

func TestDeletePod(t *testing.T) {
	c := newEnv(t)
	k, _ := c.client(t)
	pods := c.runningPods(t, "a")
	c.addBudget(t, "web", policyv1.PodDisruptionBudgetSpec{MinAvailable: &intstr.IntOrString{IntVal: 1}})
	stranger := pods[0]
	stranger.UID = "11111111-2222-3333-4444-555555555555"
	if err := k.DeletePod(t.Context(), stranger, 1); err != nil {
		t.Errorf("a pod of another UID: %v, want no error", err)
	}
	if p, err := c.CoreV1().Pods(c.name).Get(t.Context(), "a", metav1.GetOptions{}); err != nil || p.DeletionTimestamp != nil {
		t.Fatalf("after deleting a stranger: %v %v", p.DeletionTimestamp, err)
	}
	changes, err := c.CoreV1().Pods(c.name).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a"})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	if err := k.DeletePod(t.Context(), pods[0], 0); err != nil {
		t.Fatal(err)
	}
	for e := range changes.ResultChan() {
		if e.Type == watch.Deleted {
			t.Fatal("the pod is gone without a second's grace, which is the least")
		}
		if p, ok := e.Object.(*corev1.Pod); ok && p.DeletionTimestamp != nil {
			if p.DeletionGracePeriodSeconds == nil || *p.DeletionGracePeriodSeconds != 1 {
				t.Errorf("grace %d, want the one second that is the least", ptr.Deref(p.DeletionGracePeriodSeconds, -1))
			}
			break
		}
	}
	eventually(t, "the pod to go", func(ctx context.Context) (string, bool) {
		_, err := c.CoreV1().Pods(c.name).Get(ctx, "a", metav1.GetOptions{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	if err := k.DeletePod(t.Context(), pods[0], 1); err != nil {
		t.Errorf("a pod that is gone: %v", err)
	}
}

func (c env) events(t *testing.T, namespace, object string) []string {
	t.Helper()
	list, err := c.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + object})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		if e.Source.Component == "joiner" && e.ReportingController == "joiner" {
			out = append(out, fmt.Sprintf("%s %s x%d: %s", e.Type, e.Reason, e.Count, e.Message))
		}
	}
	return out
}

func podOf(p *corev1.Pod) cluster.Pod {
	return cluster.Pod{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
}

func isConflict(err error) bool {
	_, ok := errors.AsType[*kube.ConflictError](err)
	return ok
}
