package capacity

import (
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/podclass"
)

// Labels of a node are remembered by its name for as long as it has the same ones.
func TestLabelsOfANodeAreRememberedUntilTheyChange(t *testing.T) {
	remembered := NodeLabelsByName{}
	n := cluster.Node{Name: "n", Labels: map[string]string{"team": "red"}}
	for _, team := range []string{"red", "red", "blue", "blue", "red"} {
		if n.Labels["team"] != team {
			n.Labels = map[string]string{"team": team}
		}
		known := remembered.labelsOf(cluster.StateNode{Node: &n})
		for key, want := range map[string]string{"team": team, podclass.LabelHost: "n"} {
			r, _ := known.Get(key)
			if got, _ := r.Single(); got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
	}
}

// New nodes are alike only where each load is of the same pods, as many and by the same alternative.
func TestNodesWithOtherLoadsAreNotAlike(t *testing.T) {
	offering, admission, pod := &Offering{}, &podclass.Admission{}, &podclass.RelaxedPod{}
	load := PodLoad{Pod: pod, Admission: admission, Pods: []string{"a"}}
	bin := func(o *Offering, all ...PodLoad) *Bin { return &Bin{Offering: o, Load: all} }
	one := bin(offering, load)
	for name, c := range map[string]struct {
		other *Bin
		alike bool
	}{
		"another name":        {bin(offering, PodLoad{Pod: pod, Admission: admission, Pods: []string{"b"}}), true},
		"other pods":          {bin(offering, PodLoad{Pod: &podclass.RelaxedPod{}, Admission: admission, Pods: []string{"a"}}), false},
		"more pods":           {bin(offering, PodLoad{Pod: pod, Admission: admission, Pods: []string{"a", "b"}}), false},
		"another admission":   {bin(offering, PodLoad{Pod: pod, Admission: &podclass.Admission{}, Pods: []string{"a"}}), false},
		"another alternative": {bin(offering, PodLoad{Pod: pod, Admission: admission, Alt: 1, Pods: []string{"a"}}), false},
		"another offering":    {bin(&Offering{}, load), false},
		"a load more":         {bin(offering, load, load), false},
	} {
		if got := one.SameContents(c.other); got != c.alike {
			t.Errorf("%s: alike %v, want %v", name, got, c.alike)
		}
	}
}
