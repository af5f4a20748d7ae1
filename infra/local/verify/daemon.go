package verify

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corehelp "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// waitDaemons waits until each DaemonSet has a pod for each of the nodes it wants, and the scheduler has decided about it.
func (c *plane) waitDaemons(ctx context.Context, nodes []*corev1.Node) error {
	for _, d := range c.daemons {
		want := map[string]bool{}
		for _, n := range nodes {
			if wants(d, n) {
				want[n.Name] = true
			}
		}
		err := until(ctx, fmt.Sprintf("pods of daemon set %s/%s", d.Namespace, d.Name), func(ctx context.Context) (string, error) {
			pods, err := c.daemonPods(ctx, d)
			decided := 0
			for i := range pods {
				if p := &pods[i]; want[targetOf(p)] && (p.Spec.NodeName != "" || unschedulable(p) != "") {
					decided++
				}
			}
			if decided < len(want) && err == nil {
				return fmt.Sprintf("%d of %d are", decided, len(want)), nil
			}
			return "", err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// daemonsPending counts pods of DaemonSets that do not fit on nodes of the plan.
func (c *plane) daemonsPending(ctx context.Context, planned map[string]bool) (int, error) {
	n := 0
	for _, d := range c.daemons {
		pods, err := c.daemonPods(ctx, d)
		if err != nil {
			return 0, err
		}
		for i := range pods {
			if p := &pods[i]; p.Spec.NodeName == "" && planned[targetOf(p)] {
				n++
			}
		}
	}
	return n, nil
}

func (c *plane) daemonPods(ctx context.Context, d *appsv1.DaemonSet) ([]corev1.Pod, error) {
	list, err := c.CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)})
	if err != nil {
		return nil, fmt.Errorf("list pods of daemon set %s/%s: %w", d.Namespace, d.Name, err)
	}
	return list.Items, nil
}

// wants is what the DaemonSet controller asks of a node: affinity and taints, not room.
func wants(d *appsv1.DaemonSet, n *corev1.Node) bool {
	p := &corev1.Pod{Spec: d.Spec.Template.Spec}
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n); err != nil || !fits {
		return false
	}
	_, kept := corehelp.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, p.Spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule
	}, false)
	return !kept
}

// targetOf is the node that a pod of a DaemonSet is meant for, by the affinity that the controller gave it.
func targetOf(p *corev1.Pod) string {
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return p.Spec.NodeName
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		i := slices.IndexFunc(term.MatchFields, func(r corev1.NodeSelectorRequirement) bool { return r.Key == metav1.ObjectNameField })
		if i >= 0 && len(term.MatchFields[i].Values) == 1 {
			return term.MatchFields[i].Values[0]
		}
	}
	return p.Spec.NodeName
}

// unschedulable is what the scheduler said about a pod that found no node, empty when it said nothing.
func unschedulable(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}
