package filter

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/lab/bench/manifests"
	api "joiner.sh/pkg/api/v1"
)

// nodesOf are the nodes once all has come: those there are, but for the ones that go, those on their way, and the new
// ones. All are ready, and what keeps pods off only while they start is gone.
func nodesOf(c *manifests.Cluster, made []manifests.NewNode) []*corev1.Node {
	claims := map[string]*api.NodeClaim{}
	for i := range c.NodeClaims {
		claims[c.NodeClaims[i].Status.ProviderID] = &c.NodeClaims[i]
	}
	var out []*corev1.Node
	seen := map[string]bool{}
	for i := range c.Nodes {
		n := c.Nodes[i].DeepCopy()
		claim := claims[n.Spec.ProviderID]
		if claim != nil {
			seen[claim.Name] = true
		}
		if n.DeletionTimestamp != nil {
			continue
		}
		if claim != nil && !claim.StatusConditions().IsTrue(api.ConditionInitialized) {
			completeNode(n, claim)
		}
		out = append(out, n)
	}
	for i := range c.NodeClaims {
		if claim := &c.NodeClaims[i]; !seen[claim.Name] && claim.DeletionTimestamp == nil &&
			claim.Status.ProviderID != "" {
			n := &corev1.Node{}
			n.Name = claim.Name
			completeNode(n, claim)
			out = append(out, n)
		}
	}
	for _, x := range made {
		out = append(out, newNode(x))
	}
	return out
}

// completeNode makes the node what its claim says that it will be.
func completeNode(n *corev1.Node, claim *api.NodeClaim) {
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	maps.Copy(n.Labels, claim.Labels)
	n.Labels[corev1.LabelHostname] = n.Name
	n.Labels["topology.ebs.csi.aws.com/zone"] = n.Labels[corev1.LabelTopologyZone]
	n.Spec.Taints = slices.Clone(claim.Spec.Taints)
	n.Status.Allocatable = claim.Status.Allocatable
}

func newNode(x manifests.NewNode) *corev1.Node {
	n := &corev1.Node{}
	n.Name, n.UID, n.Labels = x.Name, types.UID(x.Name), maps.Clone(x.Labels)
	maps.Copy(n.Labels, map[string]string{corev1.LabelHostname: x.Name, "topology.ebs.csi.aws.com/zone": x.Zone})
	n.Spec.Taints = slices.DeleteFunc(slices.Clone(x.Taints),
		func(t corev1.Taint) bool { return t.Key == api.TaintHold })
	n.Status.Allocatable = x.Allocatable
	return n
}

// addDaemons puts a pod of each DaemonSet on every node where its controller makes one and the scheduler lets it.
func (s *scheduler) addDaemons(c *manifests.Cluster) {
	for _, n := range s.nodes {
		for i := range c.DaemonSets {
			d := &c.DaemonSets[i]
			p := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: *d.Spec.Template.Spec.DeepCopy()}
			p.Namespace, p.Name = d.Namespace, fmt.Sprintf("%s-on-%s", d.Name, n.Name)
			p.UID = types.UID(p.Name)
			for key, effect := range map[string]corev1.TaintEffect{
				corev1.TaintNodeNotReady:       corev1.TaintEffectNoExecute,
				corev1.TaintNodeUnreachable:    corev1.TaintEffectNoExecute,
				corev1.TaintNodeDiskPressure:   corev1.TaintEffectNoSchedule,
				corev1.TaintNodeMemoryPressure: corev1.TaintEffectNoSchedule,
				corev1.TaintNodePIDPressure:    corev1.TaintEffectNoSchedule,
				corev1.TaintNodeUnschedulable:  corev1.TaintEffectNoSchedule,
			} {
				p.Spec.Tolerations = append(p.Spec.Tolerations,
					corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
			}
			if s.refusalReason(p, n.Name) == "" {
				s.bindPod(p, n.Name)
			}
		}
	}
}
