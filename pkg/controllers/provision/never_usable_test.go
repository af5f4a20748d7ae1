package provision_test

import (
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// Nodes on which something stays that keeps them from ever being initialized, as the taint of an agent that does not
// start, are not bought without end: two of a type, one of another, and then none for an hour. Pods say why. Where only
// one type is like that the next one serves them.
func TestNodesThatNeverInitializeAreNotBoughtWithoutEnd(t *testing.T) {
	for name, c := range map[string]struct {
		oneType bool
		want    int // nodes in three hours
	}{"every type": {want: 3}, "one type": {oneType: true, want: 3}} {
		w := controllertest.NewWorld()
		w.ChangePool(func(p *cluster.Pool) { p.Disruption = cluster.Disruption{Never: true} })
		first := ""
		w.MarNode = func(n *cluster.Node) {
			typ := n.Labels["node.kubernetes.io/instance-type"]
			if first == "" {
				first = typ
			}
			if typ == first || !c.oneType {
				n.Taints = append(n.Taints, cluster.Taint{Key: "node.cilium.io/agent-not-ready", Effect: "NoSchedule"})
			}
		}
		w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
		f, began := &controllertest.Functions{World: w}, w.Now()
		seen, bought := map[string]bool{}, map[string]int{} // nodes by type
		for w.Now().Sub(began) < 150*time.Minute {
			if err := f.Provision(w.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := f.Lifecycle(w.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			w.Advance(30 * time.Second)
			for _, i := range w.Instances() {
				if !seen[i.ID] {
					seen[i.ID] = true
					bought[i.Type]++
				}
			}
		}
		if got := len(seen); got != c.want || bought[first] != 2 || runs(w) != c.oneType {
			t.Errorf("%s: bought %v, want %d, 2 of them %s; runs %t", name, bought, c.want, first, runs(w))
		}
		said := strings.Join(controllertest.EventsWith(w.Events("Pod"), "FailedScheduling"), "\n")
		const want = "3 nodes of the class in a row never became usable; it is left alone until "
		const words = "taint node.cilium.io/agent-not-ready:NoSchedule is still on the node; its NodePool does not declare it under startupTaints"
		if told := strings.Contains(said, want) && strings.Contains(said, words); told == c.oneType {
			t.Errorf("%s: pods say %q, want %q: %t", name, said, want, !c.oneType)
		}
	}
}
