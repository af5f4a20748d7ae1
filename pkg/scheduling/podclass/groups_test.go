package podclass

import (
	"slices"
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
)

// A pod has no place as long as one thing of it is not known, or makes no sense.
func TestPodsThatNobodyKnowsAreTakenOut(t *testing.T) {
	unread := "nobody has read which devices its ResourceClaims ask for"
	negative, huge := resources.List{CPU: -1}, resources.List{Memory: mostAmount + 1}
	for _, c := range []struct {
		why string
		pod cluster.Pod
	}{
		{"it has a gate", cluster.Pod{Unmodelled: []string{"it has a gate"}}},
		{"nobody has read where its volumes are", cluster.Pod{UnreadClaims: []string{"data"}}},
		{unread, cluster.Pod{DeviceTemplates: []string{"gpu"}}},
		{unread, cluster.Pod{DeviceClaims: []string{"gpu"}}},
		{"it requests a negative amount: " + negative.String(), cluster.Pod{Need: negative}},
		{"nothing has as much as it requests: " + huge.String(), cluster.Pod{Need: huge}},
	} {
		fine := cluster.Pod{Name: "fine", Need: resources.List{Memory: mostAmount}}
		known, out := takeUnmodelled([]*cluster.Pod{&c.pod, &fine})
		if !slices.Equal(known, []*cluster.Pod{&fine}) || len(out) != 1 || !slices.Equal(out[0].Why, []string{c.why}) {
			t.Errorf("%q: %v, %v", c.why, known, out)
		}
	}
}
