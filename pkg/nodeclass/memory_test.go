package nodeclass_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass"
)

// A step of the story: what there is, and what is known then.
func TestRealMemoryIsLearned(t *testing.T) {
	c := class()
	nodeclass.UpdateStatus(c, found(), noon())
	registered := []cluster.Condition{{Type: v1.ConditionRegistered, Status: "True"}}
	node := func(name, kind string, kib int64) (cluster.Claim, cluster.Node) {
		return cluster.Claim{Name: name, Class: "default", ProviderID: "aws:///a/" + name, ImageID: "ami-1", Conditions: registered,
				Labels: map[string]string{"node.kubernetes.io/instance-type": kind}, Capacity: resources.List{Memory: 7577 << 20}},
			cluster.Node{Name: name, ProviderID: "aws:///a/" + name, Labels: map[string]string{"node.kubernetes.io/instance-type": kind}, Capacity: resources.List{Memory: kib << 10}}
	}
	now := noon()
	learn := func(step string, want map[string]int64, news bool, change func(claim *cluster.Claim, n *cluster.Node), kind string, kib int64) {
		t.Helper()
		var claims []cluster.Claim
		var nodes []cluster.Node
		if kind != "" {
			claim, n := node("i-1", kind, kib)
			if change != nil {
				change(&claim, &n)
			}
			claims, nodes = append(claims, claim), append(nodes, n)
		}
		annotation, changed := nodeclass.ObserveMemory(c, claims, nodes, now)
		c.Annotations = map[string]string{v1.AnnotationObservedMemory: annotation}
		if d := cmp.Diff(want, nodeclass.DescribeClass(c).LearnedMemoryMiB); d != "" || changed != news {
			t.Errorf("%s: news %t, memory (-want +got):\n%s", step, changed, d)
		}
	}
	learn("nothing", nil, false, nil, "", 0)
	learn("a node of another class", nil, false, func(c *cluster.Claim, _ *cluster.Node) { c.Class = "other" }, "m5.large", 7_900_000)
	learn("a node that has not registered", nil, false, func(c *cluster.Claim, _ *cluster.Node) { c.Conditions = nil }, "m5.large", 7_900_000)
	learn("a node of an older image", nil, false, func(c *cluster.Claim, _ *cluster.Node) { c.ImageID = "ami-0" }, "m5.large", 7_900_000)
	learn("a node without its figure", nil, false, nil, "m5.large", 0)
	learn("the first node", map[string]int64{"m5.large": 7714}, true, nil, "m5.large", 7_900_000)
	learn("the same again", map[string]int64{"m5.large": 7714}, false, nil, "m5.large", 7_900_000)
	learn("one with more", map[string]int64{"m5.large": 7714}, false, nil, "m5.large", 8_000_000)
	learn("one with less", map[string]int64{"m5.large": 7704}, true, nil, "m5.large", 7_889_000)
	learn("another type", map[string]int64{"m5.large": 7704, "m6g.large": 7812}, true, nil, "m6g.large", 8_000_000)
	learn("one that says that it is of another type", map[string]int64{"m5.large": 7704, "m6g.large": 7812}, false,
		func(_ *cluster.Claim, n *cluster.Node) { n.Labels["node.kubernetes.io/instance-type"] = "c5.xlarge" }, "m5.large", 7_900_000)
	learn("one that says 1 MiB", map[string]int64{"m5.large": 7704, "m6g.large": 7812}, false, nil, "m5.large", 1024)
	learn("one that says 16 TiB", map[string]int64{"m5.large": 7704, "m6g.large": 7812}, false, nil, "t3.nano", 16<<30)
	learn("no node", map[string]int64{"m5.large": 7704, "m6g.large": 7812}, false, nil, "", 0)
	now = now.Add(59 * 24 * time.Hour)
	learn("59 days later", map[string]int64{"m5.large": 7704, "m6g.large": 7812}, true, nil, "m6g.large", 8_000_000)
	now = now.Add(36 * time.Hour)
	learn("after 60 days", map[string]int64{"m6g.large": 7812}, true, nil, "", 0)
	c.Status.AMIs = []awsv1.AMI{{ID: "ami-2"}}
	if got := nodeclass.DescribeClass(c).LearnedMemoryMiB; len(got) != 0 {
		t.Errorf("of another image: %v", got)
	}
	learn("with another image", nil, true, nil, "", 0)
}
