package requirements_test

import (
	"fmt"

	"joiner.sh/pkg/model/requirements"
)

// A NodePool allows some zones and generations, a pod asks for one zone. Together they say what a node may be.
func ExampleSet_AndSet() {
	newer, err := requirements.NewRequirement("karpenter.k8s.aws/instance-generation", requirements.Gt, "5")
	if err != nil {
		fmt.Println(err)
		return
	}
	pool := requirements.NewSet(newer, requirements.Of("topology.kubernetes.io/zone", "eu-west-1a", "eu-west-1b"))
	pod := requirements.NewSet(requirements.Of("topology.kubernetes.io/zone", "eu-west-1b", "eu-west-1c"))
	both := pool.AndSet(pod)
	fmt.Println(both)
	fmt.Println(both.Matches(map[string]string{
		"karpenter.k8s.aws/instance-generation": "7", "topology.kubernetes.io/zone": "eu-west-1b"}))
	fmt.Println(both.Matches(map[string]string{
		"karpenter.k8s.aws/instance-generation": "5", "topology.kubernetes.io/zone": "eu-west-1b"}))
	// Output:
	// karpenter.k8s.aws/instance-generation >= 6 and topology.kubernetes.io/zone in (eu-west-1b)
	// true
	// false
}

// What cannot be is found before anything is launched: no zone is in both.
func ExampleSet_Intersects() {
	pool := requirements.NewSet(requirements.Of("topology.kubernetes.io/zone", "eu-west-1a"))
	pod := requirements.NewSet(requirements.Of("topology.kubernetes.io/zone", "eu-west-1c"))
	fmt.Println(pool.Intersects(pod))
	for _, r := range pool.AndSet(pod).Impossible() {
		fmt.Println("no node can have", r.Key)
	}
	// Output:
	// false
	// no node can have topology.kubernetes.io/zone
}

// An operator that nobody knows is refused when the requirement is made, with those that there are.
func ExampleNewRequirement() {
	_, err := requirements.NewRequirement("example.com/team", "Equals", "a")
	fmt.Println(err)
	// Output:
	// requirement example.com/team: unknown operator "Equals", use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte
}
