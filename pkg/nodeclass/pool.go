package nodeclass

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	units "joiner.sh/pkg/model/resources"
)

// UpdatePool brings the conditions of the pool up to date. classes are all EC2NodeClasses. It changes the pool
// given and reports whether anything changed. Its nodes are counted by lifecycle, see Count.
func UpdatePool(p *v1.NodePool, classes []awsv1.EC2NodeClass, now time.Time) bool {
	before := p.Status.DeepCopy()
	conditions := p.StatusConditions()
	conditions.Initialize()
	if problems := PoolProblems(p); len(problems) > 0 {
		conditions.SetFalse(v1.ConditionValidationSucceeded, v1.ReasonNodePoolValidationFailed,
			strings.Join(problems, "; "), now)
	} else {
		conditions.SetTrue(v1.ConditionValidationSucceeded, now)
	}
	updateDisruptionValid(p, now)
	updateClassReady(p, classes, now)
	return !equalJSON(before, &p.Status)
}

// updateDisruptionValid says what about disruption cannot be understood. That is a condition of its own, and only there
// while something is wrong: the pool goes on launching, for a slip in a budget must keep no pod waiting, and its nodes
// are left alone until it is mended.
func updateDisruptionValid(p *v1.NodePool, now time.Time) {
	if d := ReadDisruption(p); d.Message != "" {
		what := "no node is disrupted by choice until this is mended: "
		if d.ExpireGently {
			what = "no node is disrupted by choice, and none that expires is replaced, until this is mended: "
		}
		p.StatusConditions().SetFalse(v1.ConditionDisruptionValid, v1.ReasonNodePoolValidationFailed, what+d.Message,
			now)
		return
	}
	p.StatusConditions().Clear(v1.ConditionDisruptionValid)
}

func updateClassReady(p *v1.NodePool, classes []awsv1.EC2NodeClass, now time.Time) {
	conditions := p.StatusConditions()
	name := p.Spec.Template.Spec.NodeClassRef.Name
	i := slices.IndexFunc(classes, func(c awsv1.EC2NodeClass) bool { return c.Name == name })
	if i < 0 {
		conditions.SetFalse(v1.ConditionNodeClassReady, v1.ReasonNodeClassNotFound, "there is no EC2NodeClass "+name,
			now)
		return
	}
	c := &classes[i]
	resetHealth(p, c, now)
	k, _ := c.StatusConditions().Get(awsv1.ConditionReady)
	switch {
	case c.DeletionTimestamp != nil:
		conditions.SetFalse(v1.ConditionNodeClassReady, v1.ReasonNodeClassTerminating,
			"EC2NodeClass "+name+" is being deleted", now)
	case IsReady(c):
		conditions.SetTrue(v1.ConditionNodeClassReady, now)
	case k.Status == "False":
		conditions.SetFalse(v1.ConditionNodeClassReady, k.Reason, classProblem(c, k.Message), now)
	default:
		conditions.SetUnknown(v1.ConditionNodeClassReady, v1.ReasonNodeClassReadinessUnknown,
			"EC2NodeClass "+name+" has not been looked at since it changed", now)
	}
}

// resetHealth forgets how registrations went when pool or class changed: the next nodes may fare otherwise.
func resetHealth(p *v1.NodePool, c *awsv1.EC2NodeClass, now time.Time) {
	k, ok := p.StatusConditions().Get(v1.ConditionNodeRegistrationHealthy)
	if ok && k.ObservedGeneration == p.Generation && p.Status.NodeClassObservedGeneration == c.Generation {
		return
	}
	p.StatusConditions().SetUnknown(v1.ConditionNodeRegistrationHealthy, v1.ReasonAwaitingReconciliation,
		v1.MessageAwaitingReconciliation, now)
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

// UpdatePoolCounts stores in the status what the nodes of the pool have, "nodes" included, and reports whether that is
// news. The five usual resources are always there.
func UpdatePoolCounts(p *v1.NodePool, has units.List) bool {
	names := append(has.Names(), units.CPU, units.Memory, units.Pods, units.Ephemeral, string(v1.LimitNodes))
	list := corev1.ResourceList{}
	for _, name := range names {
		switch n := has.Get(name); name {
		case units.CPU:
			list[corev1.ResourceCPU] = *resource.NewMilliQuantity(n, resource.DecimalSI)
		case units.Memory, units.Ephemeral:
			list[corev1.ResourceName(name)] = *resource.NewQuantity(n, resource.BinarySI)
		default:
			list[corev1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
		}
	}
	nodes := has.Get(string(v1.LimitNodes))
	if p.Status.Nodes != nil && *p.Status.Nodes == nodes && equalJSON(p.Status.Resources, list) {
		return false
	}
	p.Status.Resources, p.Status.Nodes = list, &nodes
	return true
}
