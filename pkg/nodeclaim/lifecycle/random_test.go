package lifecycle_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
)

func randomAge(r *rand.Rand) time.Duration {
	return []time.Duration{0, -time.Second, -20 * time.Second, -40 * time.Second, -6 * time.Minute, -20 * time.Minute, -time.Hour, time.Minute}[r.IntN(8)]
}

func randomInstance(r *rand.Rand, i, n int) cluster.Instance {
	states := []string{"pending", "running", "running", "running", "stopping", "stopped", "shutting-down", "terminated"}
	out := cluster.Instance{ID: fmt.Sprintf("i-%d", i), State: states[r.IntN(len(states))], Zone: "a", Type: "m5.large", CapacityType: "spot",
		Launched: start().Add(randomAge(r)), Claim: fmt.Sprintf("c%d", i), ClaimUID: fmt.Sprintf("uid-c%d", i)}
	switch r.IntN(6) {
	case 0:
		out.Claim, out.ClaimUID = "", ""
	case 1:
		k := r.IntN(n)
		out.Claim, out.ClaimUID = fmt.Sprintf("c%d", k), fmt.Sprintf("uid-c%d", k)
	}
	return out
}

func randomClaim(r *rand.Rand, i, n int) cluster.Claim {
	c := cluster.Claim{Name: fmt.Sprintf("c%d", i), UID: fmt.Sprintf("uid-c%d", i), Pool: "p", Class: "default",
		Created: start().Add(randomAge(r)), Finalizer: r.IntN(10) > 0, Requests: resources.List{CPU: 100},
		Labels: map[string]string{awsv1.LabelEC2NodeClass: "default"}, Annotations: map[string]string{}}
	if r.IntN(3) == 0 {
		c.Deleting = start().Add(-time.Duration(r.IntN(100)) * time.Second)
	}
	if r.IntN(4) == 0 {
		grace := time.Duration(r.IntN(120)) * time.Second
		c.TerminationGrace = &grace
	}
	if r.IntN(5) == 0 {
		c.ExpireAfter = 30 * time.Minute
	}
	switch r.IntN(8) {
	case 0:
	case 1:
		c.ProviderID = providerID(fmt.Sprintf("i-%d", r.IntN(n))) // may be another's
	case 2:
		c.ProviderID = providerID(fmt.Sprintf("i-unlisted-%d", i))
	default:
		c.ProviderID = providerID(fmt.Sprintf("i-%d", i))
	}
	stages := []string{v1.ConditionLaunched, v1.ConditionRegistered, v1.ConditionInitialized}
	done := 0
	if c.ProviderID != "" {
		done = 1 + r.IntN(3)
	}
	for _, k := range stages[:done] {
		c.Conditions = append(c.Conditions, cluster.Condition{Type: k, Status: "True", Reason: k, Since: start().Add(randomAge(r))})
	}
	if done > 1 {
		c.NodeName = fmt.Sprintf("n%d", i)
	}
	if !c.Deleting.IsZero() && r.IntN(2) == 0 {
		c.Conditions = append(c.Conditions, cluster.Condition{Type: v1.ConditionDrained, Status: "Unknown", Reason: v1.ReasonDraining, Since: c.Deleting})
	}
	return c
}

func randomNode(r *rand.Rand, i, n int) cluster.Node {
	out := cluster.Node{Name: fmt.Sprintf("n%d", i), UID: fmt.Sprintf("uid-n%d", i), ProviderID: providerID(fmt.Sprintf("i-%d", i)),
		Ready: r.IntN(4) > 0, Finalizer: r.IntN(5) > 0, Labels: map[string]string{awsv1.LabelEC2NodeClass: "default"},
		Allocatable: resources.List{CPU: 4000}}
	switch r.IntN(10) {
	case 0:
		out.ProviderID = providerID(fmt.Sprintf("i-%d", r.IntN(n)))
	case 1:
		out.ProviderID = ""
	case 2:
		out.Deleting = start()
	}
	if !out.Deleting.IsZero() {
		out.Finalizer = true // else it would be gone
	}
	if r.IntN(5) == 0 {
		out.Taints = []cluster.Taint{{Key: v1.TaintDisrupted, Effect: "NoSchedule"}}
	}
	if r.IntN(5) == 0 {
		out.Taints = append(out.Taints, cluster.Taint{Key: "node.kubernetes.io/not-ready", Effect: "NoExecute"})
	}
	return out
}
