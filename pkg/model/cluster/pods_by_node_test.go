package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPodsByNode lists only pods that are bound, run or will, and exist; each list can grow without touching another.
func TestPodsByNode(t *testing.T) {
	s := Snapshot{Pods: []Pod{{Name: "a", NodeName: "x"}, {Name: "b", NodeName: "y"}, {Name: "waits"}, {Name: "c", NodeName: "x"},
		{Name: "ended", NodeName: "x", Phase: "Succeeded"}, {Name: "room", NodeName: "y", Virtual: true}}}
	all := s.PodsByNode()
	_ = append(all["x"], &Pod{Name: "more"})
	_ = append(all["y"], &Pod{Name: "more"})
	got := map[string][]string{}
	for node, pods := range all {
		for _, p := range pods {
			got[node] = append(got[node], p.Name)
		}
	}
	if d := cmp.Diff(map[string][]string{"x": {"a", "c"}, "y": {"b"}}, got); d != "" {
		t.Error(d)
	}
	if all["x"][0] != &s.Pods[0] {
		t.Error("a pod is a copy")
	}
}
