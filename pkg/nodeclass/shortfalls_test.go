package nodeclass_test

import (
	"fmt"
	"testing"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass"
)

// What nodes have less of than they were launched for outlives them, until it is old or the class has another spec.
func TestShortfallsAreRemembered(t *testing.T) {
	c := class()
	nodeclass.UpdateStatus(c, found(), noon())
	c.Annotations = map[string]string{awsv1.AnnotationHash: "1"}
	learn := func(step string, now time.Time, want string, names ...string) {
		t.Helper()
		var claims []cluster.Claim
		var nodes []cluster.Node
		for _, name := range names {
			claims = append(claims, cluster.Claim{Name: name, Class: "default", ProviderID: "aws:///a/" + name, ImageID: "ami-1",
				Labels: map[string]string{"node.kubernetes.io/instance-type": "m5.large"}, Allocatable: resources.List{CPU: 1930, Pods: 29},
				Annotations: map[string]string{awsv1.AnnotationHash: "1"}, Conditions: []cluster.Condition{{Type: v1.ConditionRegistered, Status: "True"}}})
			nodes = append(nodes, cluster.Node{Name: name, ProviderID: "aws:///a/" + name,
				Labels: map[string]string{"node.kubernetes.io/instance-type": "c5.xlarge"}, Allocatable: resources.List{CPU: 1500, Pods: 29}})
		}
		text, _ := nodeclass.ObserveShortfalls(c, claims, nodes, now)
		c.Annotations[v1.AnnotationObservedShortfalls] = text
		if got := fmt.Sprint(nodeclass.DescribeClass(c).Observed); got != want {
			t.Errorf("%s: remembers %s, want %s", step, got, want)
		}
	}
	both := "[{m5.large i-1 [{cpu 1500}]} {m5.large i-2 [{cpu 1500}]}]"
	learn("nothing", noon(), "[]")
	learn("one node", noon(), "[{m5.large i-1 [{cpu 1500}]}]", "i-1")
	learn("it is gone, another came", noon(), both, "i-2")
	learn("a third tells nothing more", noon(), both, "i-3")
	learn("all are gone", noon().Add(59*24*time.Hour), both)
	c.Annotations[awsv1.AnnotationHash] = "2"
	learn("another spec", noon(), "[]", "i-4")
	c.Annotations[awsv1.AnnotationHash] = "1"
	learn("again", noon(), "[{m5.large i-1 [{cpu 1500}]}]", "i-1")
	learn("after 60 days", noon().Add(60*24*time.Hour), "[]")
}
