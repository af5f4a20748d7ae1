package e2e_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"joiner.sh/infra/local/cloudtest"
	"joiner.sh/infra/local/env"
	"joiner.sh/pkg/install"
	"joiner.sh/pkg/testing/shortrun"
)

// owned are manifests of a user's repository, beside pool and class.
const owned = `
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: agreed-price}
spec:
  requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [c5]}]
  priceAdjustment: "-10%"
`

// spare is the strategy of the owner's CapacityBuffer: nodes that run.
const spare = "buffer.x-k8s.io/active-capacity"

// owner applies manifests by server-side apply, and takes no field from anybody: an owner that did would fight for it.
type owner struct {
	*world
	objects []*unstructured.Unstructured
}

func (w *world) newOwner() *owner {
	w.t.Helper()
	all, err := install.External()
	if err != nil {
		w.t.Fatal(err)
	}
	borrowed, err := install.Borrowed()
	if err != nil {
		w.t.Fatal(err)
	}
	o := &owner{w, slices.Concat(borrowed, all)}
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(class{name: "default"}.String()+pool("default")+"---"+owned+
		cloudtest.CapacityBuffer("spare", spare))), 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := docs.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return o
		}
		if err != nil {
			w.t.Fatal(err)
		}
		if len(obj.Object) > 0 {
			o.objects = append(o.objects, obj)
		}
	}
}

// sync applies everything, and returns what that changed.
func (o *owner) sync() (changed []string) {
	o.t.Helper()
	for _, obj := range o.objects {
		r, err := o.Kube.ResourceClient(obj)
		if err != nil {
			o.t.Fatal(err)
		}
		before, _ := r.Get(o.ctx, obj.GetName(), metav1.GetOptions{})
		after, err := r.Apply(o.ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "argocd-controller"})
		if err != nil { // a conflict names the field and who wrote it
			o.t.Fatalf("apply %s %s: %v", obj.GetKind(), obj.GetName(), err)
		}
		if diff := cmp.Diff(content(before), content(after)); diff != "" {
			o.t.Log(diff)
			changed = append(changed, obj.GetKind()+" "+obj.GetName())
		}
	}
	return changed
}

// content is what an object says. Once after a controller wrote the status of an object in the second in which it was
// made, an apply that changes nothing is noted in managedFields with another time.
func content(obj *unstructured.Unstructured) map[string]any {
	if obj == nil {
		return nil
	}
	out := obj.DeepCopy()
	out.SetManagedFields(nil)
	out.SetResourceVersion("")
	delete(out.Object, "status")
	return out.Object
}

// An owner of the manifests, and of the user's own objects, applies them again every three minutes of a day, and setup
// installs nothing. Every function works in between. No write of the owner changes anything, and nobody has written to
// a field of his: neither ever undoes what the other did.
func TestAnOwnerAppliesItsManifestsAllDay(t *testing.T) {
	rounds := shortrun.Of(24*60/3, 8)
	w := start(t, func(o *env.Options) {
		o.Env["MANIFESTS"], o.Env["DISRUPTION"], o.Env["WATCH_DURATION"] = "external", "act", "0s"
	})
	if _, err := w.Kube.Dynamic.Resource(env.NodePools()).List(w.ctx, metav1.ListOptions{}); err == nil {
		t.Fatal("setup installed the CRDs, which somebody else is to install")
	}
	w.tick("provision", "lifecycle", "disrupt", "refresh") // they wait for the manifests
	for _, obj := range w.newOwner().objects {             // kinds come before the objects that are of them
		if err := w.Kube.ApplyObject(w.ctx, obj); err != nil {
			t.Fatal(err)
		}
		r, err := w.Kube.ResourceClient(obj)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply(w.ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "argocd-controller", Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	o := w.newOwner()
	o.sync()
	sizes := []int{2, 9, 9, 1}
	for round := range rounds {
		w.apply(deployment{name: "web", replicas: sizes[round%len(sizes)], cpu: "1500m"})
		w.tick("refresh", "provision", "lifecycle", "disrupt")
		if round%8 == 7 {
			for _, f := range []string{"spotinterruption", "reservationinterruption", "rebalance", "scheduledchange", "statechange", "setup", "preflight"} {
				w.once(f)
			}
			if l := w.living(); len(l) > 0 && l[0].CapacityType == "spot" {
				if err := w.Cloud.InterruptSpot(l[0].ID, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.settled()
		if changed := o.sync(); len(changed) > 0 {
			t.Fatalf("round %d: the owner changed %v, which somebody had changed", round, changed)
		}
	}
	if n := len(w.Cloud.DescribedInstances()); n < 2 {
		t.Errorf("%d instances were launched: the functions did nothing that an owner could object to", n)
	}
	if said := w.bufferSays("spare", "Provisioning"); !strings.HasPrefix(said, "True") {
		t.Errorf("the owner's CapacityBuffer: %s", said)
	}
	for _, r := range []schema.GroupVersionResource{env.NodePools(), env.NodeClasses()} {
		if got := w.condition(r, "default", "Ready"); got["status"] != "True" {
			t.Errorf("%s: Ready is %v", r.Resource, got)
		}
	}
}
