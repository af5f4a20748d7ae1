package kube_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"joiner.sh/pkg/install"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
)

func holdTaint() cluster.Taint {
	return cluster.Taint{Key: "joiner.sh/nominated-pods-only", Value: "here", Effect: "NoSchedule"}
}

// A held node takes the pod that was let onto it, and others when it is open.
func TestHeldNode(t *testing.T) {
	c := newEnv(t)
	provision, lifecycle := c.as(t, install.GroupProvision), c.as(t, install.GroupLifecycle)
	meant, other := c.addPod(t, "meant", "", nil), c.addPod(t, "other", "", nil)
	if err := provision.TolerateNomination(t.Context(), translate.Pod(meant), holdTaint()); err != nil {
		t.Fatal(err)
	}
	gone := translate.Pod(meant)
	gone.Name = "gone"
	if err := provision.TolerateNomination(t.Context(), gone, holdTaint()); err != nil {
		t.Errorf("a pod that is gone: %v", err)
	}
	gone = translate.Pod(meant)
	gone.UID = "another"
	if err := provision.TolerateNomination(t.Context(), gone, holdTaint()); err == nil {
		t.Error("a pod of another UID was changed")
	}
	early := c.addPod(t, "early", "", nil) // gets a second node of its own plan, and has a list of tolerations already
	for _, value := range []string{"elsewhere", "here"} {
		if now, err := c.CoreV1().Pods(c.name).Get(t.Context(), early.Name, metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		} else if err := provision.TolerateNomination(t.Context(), translate.Pod(now), cluster.Taint{Key: "joiner.sh/nominated-pods-only", Value: value, Effect: "NoSchedule"}); err != nil {
			t.Fatal(err)
		}
	}
	c.addNode(t, c.name, corev1.Taint{Key: "joiner.sh/nominated-pods-only", Value: "here", Effect: corev1.TaintEffectNoSchedule})
	c.awaitNode(t, "early")
	c.awaitNode(t, "meant")
	now, err := c.CoreV1().Pods(c.name).Get(t.Context(), other.Name, metav1.GetOptions{})
	if err != nil || now.Spec.NodeName != "" {
		t.Errorf("the other pod is on %q, %v", now.Spec.NodeName, err)
	}
	node, err := lifecycle.ReadNode(t.Context(), c.name)
	if err != nil || !slices.Contains(node.Taints, holdTaint()) {
		t.Fatalf("taints %v, %v", node.Taints, err)
	}
	for range 2 {
		if err := lifecycle.OpenNode(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	c.awaitNode(t, "other")
	now, err = c.CoreV1().Pods(c.name).Get(t.Context(), meant.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := translate.Pod(now)
	if !slices.Equal(p.Holds, []string{"here"}) || slices.ContainsFunc(p.Tolerations, func(x cluster.Toleration) bool { return x.Key == "joiner.sh/nominated-pods-only" }) {
		t.Errorf("holds %v, tolerations %v", p.Holds, p.Tolerations)
	}
}

// Should nobody register a held node in time, pods that were planned for any held node may go there, and no others.
func TestHeldNodeThatNobodyRegisters(t *testing.T) {
	c := newEnv(t)
	meant, other := c.addPod(t, "meant", "", nil), c.addPod(t, "other", "", nil)
	if err := c.as(t, install.GroupProvision).TolerateNomination(t.Context(), translate.Pod(meant), holdTaint()); err != nil {
		t.Fatal(err)
	}
	c.addNode(t, c.name, corev1.Taint{Key: "joiner.sh/nominated-pods-only", Value: "new", Effect: corev1.TaintEffectNoSchedule})
	c.awaitNode(t, "meant")
	if now, err := c.CoreV1().Pods(c.name).Get(t.Context(), other.Name, metav1.GetOptions{}); err != nil || now.Spec.NodeName != "" {
		t.Errorf("the other pod is on %q, %v", now.Spec.NodeName, err)
	}
}

func (c env) awaitNode(t *testing.T, pod string) {
	t.Helper()
	eventually(t, "pod "+pod+" to have a node", func(ctx context.Context) (string, bool) {
		p, err := c.CoreV1().Pods(c.name).Get(ctx, pod, metav1.GetOptions{})
		return fmt.Sprint(err), err == nil && p.Spec.NodeName != ""
	})
}

// The right to patch pods goes no further than holds.
func TestProvisionChangesNothingElseOfPods(t *testing.T) {
	c := newEnv(t)
	c.addPod(t, "web", "", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}} })
	config := rest.CopyConfig(c.plane.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: "provision", Groups: []string{install.GroupProvision, "system:authenticated"}}
	k, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, patch := range map[string]string{
		"image":            `{"spec":{"containers":[{"name":"main","image":"evil"}]}}`,
		"other toleration": `[{"op":"add","path":"/spec/tolerations/-","value":{"operator":"Exists"}}]`,
		"label":            `{"metadata":{"labels":{"app":"other"}}}`,
		"annotation":       `{"metadata":{"annotations":{"a":"b"}}}`,
		"finalizer":        `{"metadata":{"finalizers":["example.com/f"]}}`,
		"deadline":         `{"spec":{"activeDeadlineSeconds":1}}`,
		"gate":             `{"spec":{"schedulingGates":null}}`,
		"affinity":         `{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}}}`,
		"node selector":    `{"spec":{"nodeSelector":{"a":"b"}}}`,
	} {
		kind := types.StrategicMergePatchType // of lists it changes what is named
		if patch[0] == '[' {
			kind = types.JSONPatchType
		}
		dry := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
		// a new policy takes a moment
		eventually(t, "a refusal by the policy: "+name, func(ctx context.Context) (string, bool) {
			_, err := k.CoreV1().Pods(c.name).Patch(ctx, "web", kind, []byte(patch), dry)
			return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'joiner-provision'")
		})
	}
}
