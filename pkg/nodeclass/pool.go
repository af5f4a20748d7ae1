package nodeclass

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "joiner/pkg/api/aws/v1"
	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
)

// UpdatePool brings the status of the pool up to date (spec core.md §1.1). classes are all EC2NodeClasses, claims all NodeClaims. It
// changes the pool given and reports whether anything changed.
func UpdatePool(p *v1.NodePool, classes []awsv1.EC2NodeClass, claims []cluster.Claim, now time.Time) bool {
	before := p.Status.DeepCopy()
	conditions := p.StatusConditions()
	conditions.Initialize()
	if problems := poolProblems(p); len(problems) > 0 {
		conditions.SetFalse(v1.ConditionValidationSucceeded, v1.ReasonNodePoolValidationFailed, strings.Join(problems, "; "), now)
	} else {
		conditions.SetTrue(v1.ConditionValidationSucceeded, now)
	}
	updateClassReady(p, classes, now)
	count(p, claims)
	return !equal(before, &p.Status)
}

func updateClassReady(p *v1.NodePool, classes []awsv1.EC2NodeClass, now time.Time) {
	conditions := p.StatusConditions()
	name := p.Spec.Template.Spec.NodeClassRef.Name
	i := slices.IndexFunc(classes, func(c awsv1.EC2NodeClass) bool { return c.Name == name })
	if i < 0 {
		conditions.SetFalse(v1.ConditionNodeClassReady, v1.ReasonNodeClassNotFound, "there is no EC2NodeClass "+name, now)
		return
	}
	c := &classes[i]
	resetHealth(p, c, now)
	k, _ := c.StatusConditions().Get(awsv1.ConditionReady)
	switch {
	case c.DeletionTimestamp != nil:
		conditions.SetFalse(v1.ConditionNodeClassReady, v1.ReasonNodeClassTerminating, "EC2NodeClass "+name+" is being deleted", now)
	case Ready(c):
		conditions.SetTrue(v1.ConditionNodeClassReady, now)
	case k.Status == "False":
		conditions.SetFalse(v1.ConditionNodeClassReady, k.Reason, classProblem(c, k.Message), now)
	default:
		conditions.SetUnknown(v1.ConditionNodeClassReady, v1.ReasonNodeClassReadinessUnknown, "EC2NodeClass "+name+" has not been looked at since it changed", now)
	}
}

// resetHealth forgets how registrations went when pool or class changed: the next nodes may fare otherwise (spec core.md §4.7).
func resetHealth(p *v1.NodePool, c *awsv1.EC2NodeClass, now time.Time) {
	k, ok := p.StatusConditions().Get(v1.ConditionNodeRegistrationHealthy)
	if ok && k.ObservedGeneration == p.Generation && p.Status.NodeClassObservedGeneration == c.Generation {
		return
	}
	p.StatusConditions().SetUnknown(v1.ConditionNodeRegistrationHealthy, v1.ReasonAwaitingReconciliation, v1.MessageAwaitingReconciliation, now)
	p.Status.NodeClassObservedGeneration = c.Generation
}

// classProblem is the message of the first condition that is False, which says more than that of Ready.
func classProblem(c *awsv1.EC2NodeClass, message string) string {
	for _, k := range c.Status.Conditions {
		if k.Type != awsv1.ConditionReady && k.Status == "False" {
			return fmt.Sprintf("EC2NodeClass %s: %s: %s", c.Name, k.Reason, k.Message)
		}
	}
	return message
}

// count sums the capacity of the pool's claims that are not being deleted; the five usual resources are always there.
func count(p *v1.NodePool, claims []cluster.Claim) {
	sums := map[corev1.ResourceName]int64{corev1.ResourceCPU: 0, corev1.ResourceMemory: 0, corev1.ResourcePods: 0, corev1.ResourceEphemeralStorage: 0}
	var nodes int64
	for _, c := range claims {
		if c.Pool != p.Name || !c.Deleting.IsZero() || c.ProviderID == "" {
			continue
		}
		nodes++
		for _, name := range c.Capacity.Names() {
			sums[corev1.ResourceName(name)] += c.Capacity.Get(name)
		}
	}
	list := corev1.ResourceList{v1.LimitNodes: *resource.NewQuantity(nodes, resource.DecimalSI)}
	for name, n := range sums {
		switch name {
		case corev1.ResourceCPU:
			list[name] = *resource.NewMilliQuantity(n, resource.DecimalSI)
		case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			list[name] = *resource.NewQuantity(n, resource.BinarySI)
		default:
			list[name] = *resource.NewQuantity(n, resource.DecimalSI)
		}
	}
	p.Status.Resources, p.Status.Nodes = list, &nodes
}
