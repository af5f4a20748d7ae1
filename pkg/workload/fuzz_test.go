package workload

import "testing"

// Whatever the bytes are, parsing ends without a panic, and what it accepts can be counted, named and judged.
func FuzzParse(f *testing.F) {
	f.Add([]byte(web))
	f.Add([]byte(packed(web)))
	f.Add([]byte("\x1f\x8b")) // cut short
	f.Add([]byte(pools))
	f.Add([]byte(`{"groups":[{"name":"g","count":1,"pod":{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"-1","memory":"1e99"}}}]}}}]}`))
	f.Add([]byte(`{"nodes":[{"name":"n","instanceType":"t","zone":"z","capacityType":"spot","pods":{"g":2}}],"boundGroups":[{"name":"g","pod":{"spec":{"containers":[{}]}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if w, err := ParseWorkload(data); err == nil {
			if n := w.Pending(); n < 0 || n > MostPods {
				t.Errorf("%d pods", n)
			}
			names := w.IndexNames()
			for _, g := range w.Groups {
				PodRefusals(g.Pod.Spec)
				if got := names.GroupOf(g.Namespace() + "/" + g.PodName(0)); got != g.Name && g.Count > 0 {
					t.Errorf("pod 0 of %q is counted to %q", g.Name, got)
				}
			}
		}
		if list, err := ParseManifests(data); err == nil {
			for _, p := range list.Pools {
				if p.Spec.Template.Spec.NodeClassRef == nil {
					t.Error("a NodePool without a class")
				}
			}
		}
	})
}
