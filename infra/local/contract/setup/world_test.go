package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"joiner.sh/infra/local/cloudtest"
	"joiner.sh/infra/local/env"
	"joiner.sh/infra/local/lambdahost"
	"joiner.sh/pkg/install"
)

const (
	preflightType = "Custom::JoinerPreflight"
	setupType     = "Custom::JoinerSetup"
	patience      = 4 * time.Minute
)

// world is an environment whose schedules are paused, so that the test fires each pass.
type world struct{ *env.Env }

func start(t *testing.T) *world {
	t.Helper()
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	out := &cloudtest.Log{}
	e, err := env.StartEnvironment(t.Context(), env.Options{Root: root, Stack: "cdk.drain", Dir: filepath.Join(t.TempDir(), "plane"), Paused: true, PendingFor: 100 * time.Millisecond,
		BootDelay: 100 * time.Millisecond, FunctionLog: out, Env: map[string]string{"WATCH_DURATION": "1s"}})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log("the functions' log:\n" + out.String())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return &world{e}
}

// ask wants success, or a failure that says something.
func (w *world) ask(t *testing.T, request, resourceType, says string, properties map[string]any) {
	t.Helper()
	a, err := w.RequestResource(t.Context(), request, resourceType, properties)
	if err != nil {
		t.Fatal(err)
	}
	status := map[bool]string{true: "SUCCESS", false: "FAILED"}[says == ""]
	if a.Status != status || !strings.Contains(a.Reason, says) {
		t.Fatalf("%s %s: %s %s; want %s with %q", request, resourceType, a.Status, a.Reason, status, says)
	}
}

// tick runs a function once and wants it to succeed.
func (w *world) tick(t *testing.T, function string) {
	t.Helper()
	eventually(t, function+" is free", func(ctx context.Context) (string, bool) {
		res, err := w.Host.InvokeFunction(ctx, w.FunctionName(function), lambdahost.RequestResponse, nil)
		if err == nil && res.FunctionError != "" {
			t.Fatalf("%s: %s", function, res.Payload)
		}
		return fmt.Sprint(err), err == nil
	})
}

// launch has a pod that needs a node, and returns when it has one.
func (w *world) launch(t *testing.T, pod string) {
	t.Helper()
	manifest, err := os.ReadFile("../../demo/manifests/nodepool-v1.yaml")
	if err == nil {
		err = w.Kube.ApplyManifest(t.Context(), manifest)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.tick(t, "refresh")
	_, err = w.Kube.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "pause",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "pod "+pod+" runs on an initialized node", func(ctx context.Context) (string, bool) {
		w.tick(t, "provision")
		w.tick(t, "lifecycle")
		p, err := w.Kube.CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{})
		if err != nil || p.Status.Phase != corev1.PodRunning {
			return fmt.Sprint(err, p.Status.Phase), false
		}
		n, err := w.Kube.CoreV1().Nodes().Get(ctx, p.Spec.NodeName, metav1.GetOptions{})
		return fmt.Sprint(err), err == nil && n.Labels["karpenter.sh/initialized"] == "true"
	})
	// or whom the functions woke would put finalizers back that setup takes off
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.Host.WaitIdle(ctx); err != nil {
		t.Fatal(err)
	}
}

// keepStopped has a CapacityBuffer filled with a stopped node. Without the buffer nobody fills it again: CloudFormation
// deletes provision before setup, and here it is there.
func (w *world) keepStopped(t *testing.T) {
	t.Helper()
	borrowed, err := install.Borrowed()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range borrowed {
		definition, err := json.Marshal(o)
		if err == nil {
			err = w.Kube.ApplyManifest(t.Context(), definition)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the CapacityBuffer is stored", func(ctx context.Context) (string, bool) {
		err := w.Kube.ApplyManifest(ctx, []byte(cloudtest.CapacityBuffer("spare", "joiner.sh/stopped-capacity")))
		return fmt.Sprint(err), err == nil
	})
	eventually(t, "its node is stopped", func(ctx context.Context) (string, bool) {
		w.tick(t, "provision")
		w.tick(t, "lifecycle")
		list, err := w.Kube.Dynamic.Resource(env.NodeClaims()).List(ctx, metav1.ListOptions{LabelSelector: "joiner.sh/instance"})
		if err != nil {
			return err.Error(), false
		}
		for _, o := range list.Items {
			conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			for _, k := range conditions {
				if k, _ := k.(map[string]any); k["type"] == "Stopped" && k["status"] == "True" {
					return "", true
				}
			}
		}
		return fmt.Sprintf("%d claims, %d instances live, %d run", len(list.Items), w.living(), w.running()), false
	})
	at := w.Kube.Dynamic.Resource(schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1beta1", Resource: "capacitybuffers"})
	if err := at.Namespace("default").Delete(t.Context(), "spare", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.Host.WaitIdle(ctx); err != nil {
		t.Fatal(err)
	}
}

// living counts instances that are not ended, stopped ones too.
func (w *world) living() int {
	n := 0
	for _, i := range w.Cloud.DescribedInstances() {
		if i.State != "terminated" && i.State != "shutting-down" {
			n++
		}
	}
	return n
}

// finalizers counts those of ours on NodeClaims, Nodes and EC2NodeClasses, and the claims themselves.
func (w *world) finalizers(t *testing.T) (held, claims int) {
	t.Helper()
	for _, r := range []schema.GroupVersionResource{env.NodeClaims(), env.NodeClasses(), {Version: "v1", Resource: "nodes"}} {
		list, err := w.Kube.Dynamic.Resource(r).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if r == env.NodeClaims() {
			claims = len(list.Items)
		}
		for _, o := range list.Items {
			for _, f := range o.GetFinalizers() {
				if strings.HasPrefix(f, "karpenter.") {
					held++
				}
			}
		}
	}
	return held, claims
}

// running counts instances that are not ended.
func (w *world) running() int {
	n := 0
	for _, i := range w.Cloud.DescribedInstances() {
		if i.State == "running" || i.State == "pending" {
			n++
		}
	}
	return n
}

func (w *world) patch(t *testing.T, crd, sub, change string) {
	t.Helper()
	at := w.Kube.Dynamic.Resource(crds())
	var subs []string
	if sub != "" {
		subs = append(subs, sub)
	}
	if _, err := at.Patch(t.Context(), crd, types.MergePatchType, []byte(change), metav1.PatchOptions{}, subs...); err != nil {
		t.Fatal(err)
	}
}

func crds() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

func eventually(t *testing.T, what string, look func(context.Context) (string, bool)) {
	t.Helper()
	var seen string
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (ok bool, err error) {
		seen, ok = look(ctx)
		return ok, nil
	})
	if err != nil {
		t.Fatalf("wait until %s: %v; last seen: %s", what, err, seen)
	}
}
