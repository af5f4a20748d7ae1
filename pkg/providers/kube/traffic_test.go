package kube

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// Requests and bytes are counted by kind, those of watches as they come.
func TestTrafficIsCountedByKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPIServer(1)
		api.put("pods", testPod("web", 1, "a"))
		c := api.client()
		if _, err := c.ListNodes(t.Context()); err != nil {
			t.Fatal(err)
		}
		empty := c.TakeTraffic()["nodes"]
		api.put("nodes", testNode("a", 1, "z"))
		for range 2 {
			if _, err := c.ListNodes(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.PodsOn(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		got := c.TakeTraffic()
		if got["nodes"].Requests != 2 || got["nodes"].Bytes <= 2*empty.Bytes || got["pods"].Requests != 1 || len(got) != 2 {
			t.Errorf("traffic %v, of a list without nodes %v", got, empty)
		}
		if again := c.TakeTraffic(); len(again) > 0 {
			t.Errorf("traffic that was taken is there again: %v", again)
		}
	})
}

func TestKindOfAPath(t *testing.T) {
	got := map[string]string{}
	for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces", "/api/v1/namespaces/a", "/api/v1/namespaces/a/pods/b/eviction",
		"/apis/karpenter.sh/v1/nodeclaims/x/status", "/apis/policy/v1/namespaces/a/poddisruptionbudgets", "/version"} {
		got[path] = kindOf(path)
	}
	want := map[string]string{"/api/v1/pods": "pods", "/api/v1/namespaces": "namespaces", "/api/v1/namespaces/a": "namespaces",
		"/api/v1/namespaces/a/pods/b/eviction": "pods", "/apis/karpenter.sh/v1/nodeclaims/x/status": "nodeclaims",
		"/apis/policy/v1/namespaces/a/poddisruptionbudgets": "poddisruptionbudgets", "/version": "version"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
