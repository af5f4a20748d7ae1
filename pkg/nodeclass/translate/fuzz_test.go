package translate

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/model/buffers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/resources"
)

// countable reports whether sums of such amounts over a whole cluster stay numbers, and there are few.
func countable(l resources.List, most int) bool {
	for _, name := range l.Names() {
		if n := l.Get(name); n > mostAmount || n < -mostAmount {
			return false
		}
	}
	return len(l.Extended) <= most
}

// FuzzPod feeds pods as no API server should store them: what is kept is small, counted and refused with few words.
func FuzzPod(f *testing.F) {
	for _, text := range []string{
		`{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"resources":{"requests":{"cpu":"-1","memory":"1e400","x.y/z":"9Ei"}}}]}}`,
		`{"spec":{"nodeSelector":{"a":"\u0000"},"tolerations":[{"operator":"Gt","value":"-"}],"topologySpreadConstraints":[{"maxSkew":-1,"labelSelector":{"matchExpressions":[{"key":"","operator":"?"}]}}]}}`,
		`{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"key":"x","operator":"In"}]}]}}},"containers":[{"ports":[{"hostPort":-1}]}]}}`,
		`{"spec":{"containers":[{"name":"a"}],"overhead":{"a.b/c":"1"},"resources":{"requests":{"cpu":"1"}}},"status":{"containerStatuses":[{"name":"a","resources":{"requests":{"cpu":"1e30","a.b/d":"1"}}}]}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p corev1.Pod
		if json.Unmarshal(text, &p) != nil {
			return
		}
		shapes := PodShapes{}
		for _, got := range []cluster.Pod{Pod(&p), shapes.ListPod(&p).Pod(), *Template("ns", corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec})} {
			if !countable(got.Need, mostExtended) || len(got.Labels) > mostLabels || len(got.Unmodelled) > mostReasons+1 {
				t.Fatalf("%d labels, need %s, reasons %q", len(got.Labels), got.Need, got.Unmodelled)
			}
			for _, why := range got.Unmodelled {
				if len(why) > 2_000 {
					t.Errorf("a reason of %d bytes", len(why))
				}
			}
		}
	})
}

// FuzzNode feeds what a kubelet may write into its Node.
func FuzzNode(f *testing.F) {
	for _, text := range []string{
		`{"metadata":{"labels":{"a":"b"},"annotations":{"joiner.sh/x":"y"}},"spec":{"taints":[{"key":"","effect":"x"}]},"status":{"capacity":{"cpu":"1e30","memory":"-9Ei"},"conditions":[{"type":"Ready"},{"type":"Ready","status":"True"}]}}`,
		`{"status":{"allocatable":{"":"1","a/b/c":"0.0001"}},"metadata":{"deletionTimestamp":"0001-01-01T00:00:00Z"}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var n corev1.Node
		if json.Unmarshal(text, &n) != nil {
			return
		}
		got := Node(&n)
		if !countable(got.Capacity, mostNodeResources) || !countable(got.Allocatable, mostNodeResources) || len(got.Labels) > mostNodeLabels || len(got.Conditions) > mostConditions {
			t.Fatalf("%d labels, %d conditions, capacity %s, allocatable %s", len(got.Labels), len(got.Conditions), got.Capacity, got.Allocatable)
		}
	})
}

// mostOverlaid is what a NodeOverlay may add.
const mostOverlaid = 32

// FuzzOverlay feeds NodeOverlays: one that is in force makes prices and amounts that can be added up.
func FuzzOverlay(f *testing.F) {
	for _, text := range []string{
		`{"spec":{"requirements":[{"key":"karpenter.sh/nodepool","operator":"NotIn","values":["a"]}],"price":"1` + strings.Repeat("0", 300) + `"}}`,
		`{"spec":{"requirements":[],"priceAdjustment":"+1` + strings.Repeat("0", 306) + `%"}}`, `{"spec":{"requirements":[],"priceAdjustment":"-Inf"}}`, `{"spec":{"requirements":[],"price":"NaN"}}`,
		`{"spec":{"requirements":[],"capacity":{"hugepages-2Mi":"9Ei","a.b/c":"1e30"}}}`, `{"spec":{"requirements":[{"key":"","operator":"Gt","values":["x"]}]}}`,
	} {
		f.Add([]byte(text))
	}
	small := instancetypes.Type{Name: "t", Capacity: resources.List{CPU: 2000, Memory: 8 << 30}, Allocatable: resources.List{CPU: 1900, Memory: 7 << 30},
		Offerings: []instancetypes.Offering{{OfferingKey: instancetypes.OfferingKey{Type: "t", Zone: "a", CapacityType: instancetypes.OnDemand}, Price: 0.1, Available: true}}}
	f.Fuzz(func(t *testing.T, text []byte) {
		var o v1alpha1.NodeOverlay
		if json.Unmarshal(text, &o) != nil {
			return
		}
		s := cluster.Snapshot{Pools: []cluster.Pool{{Name: "p", Class: "c"}}, Overlays: []cluster.Overlay{Overlay(&o)}}
		got := overlays.ByPool(s, func(string) []instancetypes.Type { return []instancetypes.Type{small} })(s.Pools[0])[0]
		if usd := got.Offerings[0].Price; !(usd >= 0) || math.IsInf(usd, 0) || usd > 20_000 {
			t.Errorf("%v USD/h", usd)
		}
		if !countable(got.Capacity, mostOverlaid) || !countable(got.Allocatable, mostOverlaid) || got.Allocatable.Negative() {
			t.Errorf("capacity %s, allocatable %s", got.Capacity, got.Allocatable)
		}
	})
}

// FuzzBuffer feeds CapacityBuffers with the template that they name.
func FuzzBuffer(f *testing.F) {
	f.Add([]byte(`{"spec":{"podTemplateRef":{"name":"t"},"replicas":-5,"percentage":2147483647,"limits":{"cpu":"-1"}}}`), []byte(`{"spec":{"containers":[{"resources":{"requests":{"cpu":"0"}}}]}}`), int32(math.MaxInt32))
	f.Add([]byte(`{"spec":{"scalableRef":{"kind":"Deployment","name":"w"},"percentage":2147483647}}`), []byte(`{}`), int32(-3))
	f.Add([]byte(`{"spec":{"podTemplateRef":{"name":"t"},"limits":{"cpu":"1e400","":"0"}}}`), []byte(`{"spec":{"containers":[{"resources":{"requests":{"cpu":"-5"}}}]}}`), int32(1))
	f.Fuzz(func(t *testing.T, text, template []byte, scale int32) {
		var o v1beta1.CapacityBuffer
		var of corev1.PodTemplateSpec
		if json.Unmarshal(text, &o) != nil || json.Unmarshal(template, &of) != nil {
			return
		}
		all := []buffers.Buffer{{Object: &o, Template: Template("ns", of), Scale: scale}, {Object: &v1beta1.CapacityBuffer{}}}
		buffers.ShareOut(all)
		stopped := 0
		for _, b := range buffers.Stopped(all) {
			stopped += len(b.Pods)
		}
		if n := len(buffers.VirtualPods(all)) + stopped; n > 10_000 {
			t.Errorf("%d pods", n)
		}
		buffers.UpdateStatus(all[0], map[string]bool{}, time.Unix(0, 0))
		for _, c := range o.Status.Conditions {
			if len(c.Message) > 4_000 && len(text) < 2_000 {
				t.Errorf("a message of %d bytes", len(c.Message))
			}
		}
	})
}
