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
	owner, err := c.CoreV1().ConfigMaps(c.name).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.addPod(t, "web", "", func(p *corev1.Pod) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
	})
	k := c.caller(t, install.GroupProvision)
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
		"owner":            `[{"op":"replace","path":"/metadata/ownerReferences/0/uid","value":"00000000-0000-0000-0000-000000000000"}]`,
	} {
		c.refused(t, "joiner-provision: "+name, func(ctx context.Context) error {
			_, err := k.CoreV1().Pods(c.name).Patch(ctx, "web", patchType(patch), []byte(patch), dryPatch())
			return err
		})
	}
}

// The right to patch nodes goes no further than taints that keep new pods off.
func TestNodesKeepWhatFunctionsMayNotChange(t *testing.T) {
	c := newEnv(t)
	c.addNode(t, c.name, corev1.Taint{Key: "example.com/gpu", Effect: corev1.TaintEffectNoSchedule})
	for _, group := range []string{install.GroupDisrupt, install.GroupSpotInterruption, install.GroupReservationInterruption, install.GroupScheduledChange} {
		k := c.caller(t, group)
		patchNode := func(ctx context.Context, patch string) error {
			_, err := k.CoreV1().Nodes().Patch(ctx, c.name, patchType(patch), []byte(patch), dryPatch())
			return err
		}
		for name, patch := range map[string]string{
			"NoExecute":          `[{"op":"add","path":"/spec/taints/-","value":{"key":"karpenter.sh/disrupted","effect":"NoExecute"}}]`,
			"another taint":      `[{"op":"add","path":"/spec/taints/-","value":{"key":"x","effect":"NoSchedule"}}]`,
			"a taint of another": `[{"op":"remove","path":"/spec/taints/0"}]`,
			"label":              `{"metadata":{"labels":{"karpenter.sh/nodepool":"other"}}}`,
			"annotation":         `{"metadata":{"annotations":{"a":"b"}}}`,
			"finalizer":          `{"metadata":{"finalizers":["example.com/f"]}}`,
			"unschedulable":      `{"spec":{"unschedulable":true}}`,
			"owner":              `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"u"}]}}`,
		} {
			c.refused(t, "joiner-nodes: "+group+" "+name, func(ctx context.Context) error { return patchNode(ctx, patch) })
		}
		for name, patch := range map[string]string{
			"disrupted":      `[{"op":"add","path":"/spec/taints/-","value":{"key":"karpenter.sh/disrupted","effect":"NoSchedule"}}]`,
			"revision":       `[{"op":"add","path":"/spec/taints/-","value":{"key":"joiner.sh/failed-revision","effect":"NoSchedule"}}]`,
			"load balancers": `{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":"karpenter"}}}`,
		} {
			if err := patchNode(t.Context(), patch); err != nil {
				t.Errorf("%s %s: %v", group, name, err)
			}
		}
	}
}

// A kubelet writes none of the labels and annotations that Joiner goes by: NodeRestriction would let it. The labels that
// user data gives it come with the Node.
func TestKubeletsKeepWhatJoinerGoesBy(t *testing.T) {
	c := newEnv(t)
	kubelet := c.kubelet(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.name, Labels: map[string]string{"karpenter.sh/nodepool": "default", "karpenter.k8s.aws/instance-cpu": "2"}}}
	if _, err := kubelet.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, patch := range map[string]string{
		"do-not-disrupt":   `{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":"true"}}}`,
		"do-not-repair":    `{"metadata":{"annotations":{"karpenter.sh/do-not-repair":"true"}}}`,
		"of Joiner":        `{"metadata":{"annotations":{"joiner.sh/hold":"x"}}}`,
		"another pool":     `{"metadata":{"labels":{"karpenter.sh/nodepool":"other"}}}`,
		"no pool":          `{"metadata":{"labels":{"karpenter.sh/nodepool":null}}}`,
		"initialized":      `{"metadata":{"labels":{"karpenter.sh/initialized":"true"}}}`,
		"another instance": `{"metadata":{"labels":{"karpenter.k8s.aws/instance-cpu":"96"}}}`,
	} {
		for _, part := range [][]string{nil, {"status"}} {
			c.refused(t, fmt.Sprint("joiner-kubelet: ", name, part), func(ctx context.Context) error {
				_, err := kubelet.CoreV1().Nodes().Patch(ctx, c.name, patchType(patch), []byte(patch), dryPatch(), part...)
				return err
			})
		}
	}
	impostor := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.name + "-2", Labels: map[string]string{"karpenter.sh/registered": "true"}}}
	c.refused(t, "joiner-kubelet: registered", func(ctx context.Context) error {
		_, err := kubelet.CoreV1().Nodes().Create(ctx, impostor, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	for name, patch := range map[string]string{
		"of its own":  `{"metadata":{"annotations":{"volumes.kubernetes.io/controller-managed-attach-detach":"true"},"labels":{"kubernetes.io/arch":"arm64"}}}`,
		"its figures": `{"status":{"capacity":{"cpu":"2"}}}`,
	} {
		if _, err := kubelet.CoreV1().Nodes().Patch(t.Context(), c.name, patchType(patch), []byte(patch), dryPatch(), "status"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	patch := `{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":"true"}}}`
	if _, err := c.CoreV1().Nodes().Patch(t.Context(), c.name, patchType(patch), []byte(patch), dryPatch()); err != nil {
		t.Errorf("an admin: %v", err)
	}
}

// kubelet is a client in the group of kubelets, with rights beyond theirs.
func (c env) kubelet(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	config := rest.CopyConfig(c.plane.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: "kubelet", Groups: []string{"system:nodes", "system:masters", "system:authenticated"}}
	k, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// caller is a client that the API server takes for a function of the group.
func (c env) caller(t *testing.T, group string) *kubernetes.Clientset {
	t.Helper()
	config := rest.CopyConfig(c.plane.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: "function", Groups: []string{group, "system:authenticated"}}
	k, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// refused waits until the policy refuses, which is named first: a new one takes a moment.
func (c env) refused(t *testing.T, what string, change func(context.Context) error) {
	t.Helper()
	policy, _, _ := strings.Cut(what, ":")
	eventually(t, "a refusal by "+what, func(ctx context.Context) (string, bool) {
		err := change(ctx)
		return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'")
	})
}

// patchType is that of a patch: of lists a strategic one changes what is named.
func patchType(patch string) types.PatchType {
	if patch[0] == '[' {
		return types.JSONPatchType
	}
	return types.StrategicMergePatchType
}

func dryPatch() metav1.PatchOptions { return metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}} }
