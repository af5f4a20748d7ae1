package simulator

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// Pods are let onto a held node when the rules allow it there, which may be once others have come elsewhere.
func TestAdmitNominated(t *testing.T) {
	app := map[string]string{"app": "web"}
	pod := func(name, node string) cluster.Pod {
		return cluster.Pod{Namespace: "default", Name: name, NodeName: node, Labels: app, Need: resources.List{CPU: 100}, Spread: []cluster.Spread{{
			Key: corev1.LabelTopologyZone, MaxSkew: 1, Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", "web")}},
		}}}
	}
	node := func(name, zone string) cluster.Node {
		return cluster.Node{Name: name, Ready: true, Labels: map[string]string{corev1.LabelTopologyZone: zone}, Allocatable: resources.List{CPU: 4000}}
	}
	s := cluster.Snapshot{Nodes: []cluster.Node{node("n-a", "a"), node("n-b", "b")}, Pods: []cluster.Pod{pod("web-1", "n-a"), pod("web-2", ""), pod("web-3", "")}}
	for _, test := range []struct {
		held []string
		left int
	}{{[]string{"n-a"}, 2}, {[]string{"n-b"}, 1}, {[]string{"n-a", "n-b"}, 0}, {[]string{"n-b", "n-a"}, 0}} {
		b := New(s, nil)
		var held []NominatedNode
		for i, name := range test.held {
			held = append(held, NominatedNode{b.byName[name], []*cluster.Pod{&s.Pods[1+i]}})
		}
		if left := b.admitNominated(held, []*cluster.Pod{&s.Pods[1], &s.Pods[2]}); len(left) != test.left {
			t.Errorf("%v are held for a pod each: %d pods are left, want %d", test.held, len(left), test.left)
		}
	}
}
