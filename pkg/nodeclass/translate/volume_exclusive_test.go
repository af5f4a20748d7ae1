package translate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
)

// A claim for one pod at a time keeps other pods waiting, on whatever node: a new one is of no use to them.
func TestClaimsForOnePod(t *testing.T) {
	const class = `{metadata: {name: gp3}, provisioner: x, volumeBindingMode: WaitForFirstConsumer}`
	pod := func(name, node string) cluster.Pod {
		return cluster.Pod{Namespace: "ns", Name: name, NodeName: node, Unscheduled: node == "", UnreadClaims: []string{"data"}}
	}
	ending := pod("a", "n1")
	ending.Deleting = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const held = "persistentvolumeclaim ns/data is for one pod at a time (ReadWriteOncePod), and ns/a has it"
	for _, c := range []struct {
		name, mode string
		pods       []cluster.Pod
		want       [][]string
	}{
		{"one has it", "ReadWriteOncePod", []cluster.Pod{pod("a", "n1"), pod("b", "")}, [][]string{nil, {held}}},
		{"the one that has it comes later in the list", "ReadWriteOncePod", []cluster.Pod{pod("0", ""), pod("a", "n1")}, [][]string{{held}, nil}},
		{"the one that has it is ending", "ReadWriteOncePod", []cluster.Pod{ending, pod("b", "")}, [][]string{nil, nil}},
		{"several wait for it", "ReadWriteOncePod", []cluster.Pod{pod("a", ""), pod("b", "")}, [][]string{nil, {held}}},
		{"pods of a node may share it", "ReadWriteOnce", []cluster.Pod{pod("a", "n1"), pod("b", "")}, [][]string{nil, nil}},
	} {
		s := shelf(t, `{spec: {storageClassName: gp3, accessModes: [`+c.mode+`]}}`, `{}`, class)
		whole := s.Claims["ns/data"]
		s.Claims["ns/data"] = SlimClaim(&whole)
		s.NoteUsers(c.pods)
		for i := range c.pods {
			s.FillPod(&c.pods[i])
			if diff := cmp.Diff(c.want[i], c.pods[i].Unmodelled); diff != "" {
				t.Errorf("%s: reasons of %s (-want +got):\n%s", c.name, c.pods[i].Name, diff)
			}
		}
	}
}
