package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corehelp "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// nodeStatePrefix begins the taints by which Kubernetes tells that a node is not ready, under pressure or closed.
const nodeStatePrefix = "node.kubernetes.io/"

// waitDaemons waits until each DaemonSet has a pod for each of the nodes it wants, and the scheduler has decided about
// it.
func (c *plane) waitDaemons(ctx context.Context, nodes []*corev1.Node) error {
	for _, d := range c.daemons {
		want := map[string]bool{}
		for _, n := range nodes {
			if daemonWantsNode(d, n) {
				want[n.Name] = true
			}
		}
		err := pollUntil(ctx, fmt.Sprintf("pods of daemon set %s/%s", d.Namespace, d.Name),
			func(ctx context.Context) (string, error) {
				pods, err := c.daemonPods(ctx, d)
				decided := 0
				for i := range pods {
					if p := &pods[i]; want[targetOf(p)] && (p.Spec.NodeName != "" || unschedulableMessage(p) != "") {
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

// awaitDaemons waits until every DaemonSet has its pods on the nodes of the plan, also on those that were held until
// now. It returns how many have no node: the scheduler said that they do not fit and placed none of them for as long as
// Idle, or it has decided nothing when patience is over.
func (t *trial) awaitDaemons(ctx context.Context, planned map[string]bool) (int, error) {
	began := time.Now()
	left, moved := -1, began
	for {
		missing, undecided, err := t.daemonsMissing(ctx, planned)
		if err != nil {
			return 0, err
		}
		if missing != left {
			left, moved = missing, time.Now()
		}
		if left == 0 || undecided == 0 && time.Since(moved) > t.Idle || time.Since(began) > patience {
			return left, nil
		}
		if !sleepFor(ctx, look) {
			return 0, ctx.Err()
		}
	}
}

// daemonsMissing counts the pods of DaemonSets that nodes of the plan want and have not, and those of them that the
// scheduler has not refused, because it has not come to them or they are not made.
func (c *plane) daemonsMissing(ctx context.Context, planned map[string]bool) (missing, undecided int, err error) {
	nodes, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, 0, fmt.Errorf("list nodes: %w", err)
	}
	for _, d := range c.daemons {
		pods, err := c.daemonPods(ctx, d)
		if err != nil {
			return 0, 0, err
		}
		there, refused := map[string]bool{}, map[string]bool{}
		for i := range pods {
			p := &pods[i]
			there[p.Spec.NodeName] = true
			refused[targetOf(p)] = refused[targetOf(p)] || unschedulableMessage(p) != ""
		}
		for i := range nodes.Items {
			n := &nodes.Items[i]
			if !planned[n.Name] || there[n.Name] || !daemonWantsNode(d, n) {
				continue
			}
			missing++
			if !refused[n.Name] {
				undecided++
			}
		}
	}
	return missing, undecided, nil
}

func (c *plane) daemonPods(ctx context.Context, d *appsv1.DaemonSet) ([]corev1.Pod, error) {
	list, err := c.CoreV1().Pods(d.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)})
	if err != nil {
		return nil, fmt.Errorf("list pods of daemon set %s/%s: %w", d.Namespace, d.Name, err)
	}
	return list.Items, nil
}

// daemonWantsNode checks what the DaemonSet controller asks of a node: affinity and taints, not room. Its pods tolerate
// the taints that tell a node's state.
func daemonWantsNode(d *appsv1.DaemonSet, n *corev1.Node) bool {
	p := &corev1.Pod{Spec: d.Spec.Template.Spec}
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n); err != nil || !fits {
		return false
	}
	_, kept := corehelp.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, p.Spec.Tolerations,
		func(t *corev1.Taint) bool {
			return t.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(t.Key, nodeStatePrefix)
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
		i := slices.IndexFunc(term.MatchFields, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == metav1.ObjectNameField
		})
		if i >= 0 && len(term.MatchFields[i].Values) == 1 {
			return term.MatchFields[i].Values[0]
		}
	}
	return p.Spec.NodeName
}

// unschedulableMessage is what the scheduler said about a pod that found no node, empty when it said nothing.
func unschedulableMessage(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}
