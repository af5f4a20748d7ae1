package disruption

import (
	"testing"

	"joiner.sh/pkg/model/cluster"
)

// What a search was answered is used again only where no pod differs in what rules read of it.
func TestDigestTellsPodsApart(t *testing.T) {
	of := func(p cluster.Pod) uint64 {
		var d inputDigest
		d.addPod(&p)
		return d.sum()
	}
	base := cluster.Pod{Namespace: "a", Name: "bc", Labels: map[string]string{"app": "web"}}
	for name, change := range map[string]func(p *cluster.Pod){
		"the same letters in other words": func(p *cluster.Pod) { p.Namespace, p.Name = "ab", "c" },
		"another label":                   func(p *cluster.Pod) { p.Labels = map[string]string{"app": "db"} },
		"no label":                        func(p *cluster.Pod) { p.Labels = nil },
		"another node":                    func(p *cluster.Pod) { p.NodeName = "n1" },
	} {
		p := base
		change(&p)
		if of(p) == of(base) {
			t.Errorf("%s makes no difference", name)
		}
	}
	if again := base; of(again) != of(base) {
		t.Error("the same pod has two digests")
	}
}
