package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"joiner.sh/infra/local/env"
	"joiner.sh/pkg/testing/shortrun"
)

// Three large nodes have too little to do, and two sorts of pods fit exactly on small ones, if each goes where the plan
// has it. The new nodes are held for pods that have no name yet, those that come in the stead of the evicted: nobody
// else gets there before, and no node too many is made.
func TestReplacementsAreHeldForThePodsThatAreEvicted(t *testing.T) {
	shortrun.Skip(t)
	w := start(t, func(o *env.Options) { o.Env["DISRUPTION"] = "act" })
	types := func(names string) text {
		return text(strings.Replace(pool("default", `{key: node.kubernetes.io/instance-type, operator: In, values: [`+names+`]}`), "values: [spot, on-demand]", "values: [on-demand]", 1) + `
  disruption: {consolidateAfter: 0s, budgets: [{nodes: 100%}]}
`)
	}
	w.apply(types("m5.2xlarge"), class{name: "default"})
	w.tick("refresh")
	w.apply(deployment{name: "any", replicas: 12, cpu: "900m"},
		deployment{name: "zoned", replicas: 9, cpu: "1", spec: "\n      nodeSelector: {topology.kubernetes.io/zone: us-west-2a}"})
	w.exist("any", 12)
	w.exist("zoned", 9)
	w.serve("any", 12)
	w.serve("zoned", 9)

	w.apply(types("m5.large, m5.2xlarge"))
	w.tick("refresh")
	for _, app := range []string{"any", "zoned"} {
		w.scale(app, 3)
	}
	before := len(w.claims())
	h := w.chronicle()
	w.until("small nodes are all that is left, and every pod runs", func() (string, bool) {
		left, small, open := 0, 0, 0
		for _, i := range w.living() {
			if left++; i.Type == "m5.large" {
				small++
			}
		}
		claims := w.claims()
		for _, c := range claims {
			if status(c, "Initialized")["status"] == "True" && c.GetDeletionTimestamp() == nil {
				open++
			}
		}
		up := w.up("any") + w.up("zoned")
		return fmt.Sprintf("%d instances, %d of them small, %d of %d claims in service, %d pods up", left, small, open, len(claims), up),
			left == 3 && small == 3 && open == 3 && len(claims) == 3 && up == 6
	}, "disrupt", "provision", "lifecycle")
	w.settled()
	var made []reserved
	w.until("the chronicle tells that every node was opened", func() (saw string, told bool) {
		made, told = h.reservations(w.claims())
		return fmt.Sprintf("%+v", made), told
	})
	for _, r := range made {
		if !r.held || r.pods != r.wanted || strings.Count(r.wanted, "=1") != 2 {
			t.Errorf("node %s joined held: %t, for the pods %q, and was opened when it had %q; want one of each sort", r.node, r.held, r.wanted, r.pods)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.claims); n != before+3 {
		t.Errorf("%d claims were made, want 3: %v", n-before, slices.Sorted(maps.Keys(h.claims)))
	}
	if !strings.Contains(w.logs.String(), "added tolerations to nominated pods") {
		t.Error("nobody says that pods were let onto the nodes held for them")
	}
}

// scale has a Deployment keep so many pods, and waits until the others are gone.
func (w *world) scale(app string, replicas int) {
	w.t.Helper()
	if _, err := w.Kube.AppsV1().Deployments("default").Patch(w.ctx, app, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.until(fmt.Sprintf("%s has %d pods", app, replicas), func() (string, bool) {
		list, err := w.Kube.CoreV1().Pods("default").List(w.ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			w.t.Fatal(err)
		}
		return fmt.Sprint(len(list.Items)), len(list.Items) == replicas
	})
}

// chronicle is what was stored of claims, nodes and pods since it began. They share one store, so that versions say
// what came first.
type chronicle struct {
	mu     sync.Mutex
	claims map[string]unstructured.Unstructured // as they were made, by name
	nodes  map[string][]corev1.Node             // as they were one after the other, by name
	bound  map[types.UID]corev1.Pod             // when they got their node
}

// chronicle begins now and ends with the test.
func (w *world) chronicle() *chronicle {
	w.t.Helper()
	h := &chronicle{claims: map[string]unstructured.Unstructured{}, nodes: map[string][]corev1.Node{}, bound: map[types.UID]corev1.Pod{}}
	for _, open := range []func(metav1.ListOptions) (watch.Interface, error){
		func(o metav1.ListOptions) (watch.Interface, error) {
			return w.Kube.Dynamic.Resource(env.NodeClaims()).Watch(w.ctx, o)
		},
		func(o metav1.ListOptions) (watch.Interface, error) { return w.Kube.CoreV1().Nodes().Watch(w.ctx, o) },
		func(o metav1.ListOptions) (watch.Interface, error) {
			return w.Kube.CoreV1().Pods("default").Watch(w.ctx, o)
		},
	} {
		stream, err := open(metav1.ListOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(stream.Stop)
		go func() {
			for e := range stream.ResultChan() {
				h.note(e.Object)
			}
		}()
	}
	return h
}

func (h *chronicle) note(o runtime.Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch o := o.(type) {
	case *unstructured.Unstructured:
		if _, known := h.claims[o.GetName()]; !known {
			h.claims[o.GetName()] = *o
		}
	case *corev1.Node:
		h.nodes[o.Name] = append(h.nodes[o.Name], *o)
	case *corev1.Pod:
		if _, known := h.bound[o.UID]; !known && o.Spec.NodeName != "" {
			h.bound[o.UID] = *o
		}
	}
}

// reserved is a node that was held for pods.
type reserved struct {
	node   string
	held   bool   // when it joined
	wanted string // how many pods of which controller its claim was made for, as the annotation has it
	pods   string // how many it had when it was opened
}

// reservations are the nodes of the claims, and whether all of them were seen to be open.
func (h *chronicle) reservations(claims []unstructured.Unstructured) (out []reserved, opened bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	opened = true
	for _, c := range claims {
		name, _, _ := unstructured.NestedString(c.Object, "status", "nodeName")
		born := h.claims[c.GetName()]
		r := reserved{node: name, wanted: born.GetAnnotations()["joiner.sh/nominated-owners"]}
		at := 0
		for _, n := range slices.Backward(h.nodes[name]) {
			if r.held = isHeld(n); r.held {
				break
			}
			at = versionOf(&n)
		}
		r.held = r.held && isHeld(h.nodes[name][0])
		opened = opened && at > 0
		count := map[string]int{}
		for _, p := range h.bound {
			if p.Spec.NodeName == name && versionOf(&p) < at {
				count[string(metav1.GetControllerOf(&p).UID)]++
			}
		}
		var pods []string
		for _, uid := range slices.Sorted(maps.Keys(count)) {
			pods = append(pods, fmt.Sprintf("%s=%d", uid, count[uid]))
		}
		r.pods = strings.Join(pods, ",")
		out = append(out, r)
	}
	return out, opened
}

func isHeld(n corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "joiner.sh/nominated-pods-only" })
}

func versionOf(o metav1.Object) int {
	n, err := strconv.Atoi(o.GetResourceVersion())
	if err != nil {
		return 0 // never: etcd counts
	}
	return n
}
