package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// TestColumns is what `kubectl get` shows; columns after the bar need -o wide.
func TestColumns(t *testing.T) {
	c := newCluster(t)
	for _, given := range manifests(t, "testdata/columns.yaml") {
		c.store(t, given)
	}
	got := map[string]string{}
	for _, r := range []schema.GroupVersionResource{pools(), claims(), classes(), overlays()} {
		got[r.Resource] = c.table(t, r, "", "shown")
	}
	got["capacitybuffers"] = c.table(t, buffers(), "/namespaces/default", "shown")
	want := map[string]string{
		"nodeoverlays":    "Name=shown Ready=False Age=<age> | Weight=10",
		"capacitybuffers": "Name=shown Strategy=buffer.x-k8s.io/active-capacity PodTemplate=<nil> Replicas=2 Ready=True Provisioned=False Age=<age>",
		"nodepools":       "Name=shown NodeClass=blue Nodes=2 Ready=True Age=<age> | Weight=7 CPU=6 Memory=15Gi CPU-Limit=1000 Why=all is well",
		"nodeclaims": "Name=shown Type=m5.large Capacity=spot Zone=us-west-2a Node=ip-10-0-0-1 Ready=False Age=<age> | " +
			"ImageID=ami-1 ID=aws:///us-west-2a/i-1 NodePool=shown NodeClass=blue Drifted=True Disruption=Underutilized Why=<nil>",
		"ec2nodeclasses": "Name=shown Ready=Unknown Age=<age> | Role=nodes Profile=demo_1 Why=subnets are looked for",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// table asks for one object as kubectl does and writes its cells with the names of their columns.
func (c cluster) table(t *testing.T, r schema.GroupVersionResource, namespace, name string) string {
	t.Helper()
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("%s/apis/%s/%s%s/%s/%s", c.config.Host, r.Group, r.Version, namespace, r.Resource, name)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var table metav1.Table
	if err := json.NewDecoder(answer.Body).Decode(&table); err != nil || len(table.Rows) != 1 {
		t.Fatalf("table of %s: %d rows, status %s: %v", r.Resource, len(table.Rows), answer.Status, err)
	}
	var out strings.Builder
	wide := false
	for i, column := range table.ColumnDefinitions {
		if column.Priority > 0 && !wide {
			wide = true
			out.WriteString(" |")
		}
		cell := fmt.Sprint(table.Rows[0].Cells[i])
		if column.Name == "Age" {
			cell = "<age>"
		}
		out.WriteString(" " + column.Name + "=" + cell)
	}
	return strings.TrimSpace(out.String())
}

// TestScale changes the replicas of a static pool through the scale subresource, as `kubectl scale nodepool` does.
func TestScale(t *testing.T) {
	c := newCluster(t)
	var static, dynamic *unstructured.Unstructured
	for _, given := range manifests(t, "testdata/scale.yaml") {
		stored := c.store(t, given)
		if given.GetName() == "static" {
			static = stored
		} else {
			dynamic = stored
		}
	}
	patch := []byte(`{"spec":{"replicas":5}}`)
	r := c.Resource(pools())
	answer, err := r.Patch(t.Context(), static.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	if err != nil {
		t.Fatal(err)
	}
	var scale autoscalingv1.Scale
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, &scale); err != nil {
		t.Fatal(err)
	}
	if scale.Spec.Replicas != 5 || scale.Status.Replicas != 2 {
		t.Errorf("scale wants %d and has %d, want 5 and 2", scale.Spec.Replicas, scale.Status.Replicas)
	}
	_, err = r.Patch(t.Context(), dynamic.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "Cannot transition NodePool between static") {
		t.Errorf("scaling a dynamic pool: %v", err)
	}
}

// TestNames is what kubectl accepts for the kinds, and which have a namespace.
func TestNames(t *testing.T) {
	c := newCluster(t)
	client, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, group := range []string{"karpenter.sh/v1", "karpenter.k8s.aws/v1", "karpenter.sh/v1alpha1", "joiner.sh/v1alpha1", "autoscaling.x-k8s.io/v1beta1"} {
		resources, err := client.ServerResourcesForGroupVersion(group)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range resources.APIResources {
			got[r.Name] = fmt.Sprintf("%s %s %v %v namespaced=%t", r.Kind, r.SingularName, r.ShortNames, r.Categories, r.Namespaced)
		}
	}
	want := map[string]string{
		"nodepools":              "NodePool nodepool [] [karpenter] namespaced=false",
		"nodepools/status":       "NodePool  [] [] namespaced=false",
		"nodepools/scale":        "Scale  [] [] namespaced=false",
		"nodeclaims":             "NodeClaim nodeclaim [] [karpenter] namespaced=false",
		"nodeclaims/status":      "NodeClaim  [] [] namespaced=false",
		"ec2nodeclasses":         "EC2NodeClass ec2nodeclass [ec2nc ec2ncs] [karpenter] namespaced=false",
		"ec2nodeclasses/status":  "EC2NodeClass  [] [] namespaced=false",
		"nodeoverlays":           "NodeOverlay nodeoverlay [overlays] [karpenter] namespaced=false",
		"nodeoverlays/status":    "NodeOverlay  [] [] namespaced=false",
		"noderollouts":           "NodeRollout noderollout [] [karpenter] namespaced=false",
		"noderollouts/status":    "NodeRollout  [] [] namespaced=false",
		"capacitybuffers":        "CapacityBuffer capacitybuffer [cb] [autoscaling] namespaced=true",
		"capacitybuffers/status": "CapacityBuffer  [] [] namespaced=true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
