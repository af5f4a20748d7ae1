package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shutdownTaint is what the cloud-controller-manager puts on the Node of a stopped instance.
const shutdownTaint = "node.cloudprovider.kubernetes.io/shutdown"

// joinCluster boots the instance and brings its Node into the cluster. An error is why it never will be there.
func (b *Bridge) joinCluster(ctx context.Context, i Instance) error {
	behavior := b.behaviorOf(i)
	if !waitFor(ctx, b.options.BootDelay+behavior.Late) {
		return ctx.Err()
	}
	if behavior.NeverJoin {
		return errors.New("does not join: told so")
	}
	node, err := b.prepareNode(i, behavior)
	if err != nil {
		return fmt.Errorf("does not join: %w", err)
	}
	if behavior.NeverReady {
		delete(node.Annotations, kwokKey)
		node.Status.Conditions = []corev1.NodeCondition{networkDown()}
	}
	back, err := b.createNode(ctx, i, node)
	if err != nil {
		return fmt.Errorf("does not join: %w", err)
	}
	b.requestCertificate(i, behavior)
	if back {
		b.logLine(i, "is back")
		return nil
	}
	b.logLine(i, "registered")
	if err := b.initializeNode(ctx, i); err != nil {
		return err
	}
	if err := b.runAgents(ctx, i); err != nil {
		return err
	}
	return b.publishSlices(ctx, i, behavior.Slices)
}

func (b *Bridge) behaviorOf(i Instance) Behavior {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.behavior == nil {
		return Behavior{}
	}
	return b.behavior(i)
}

// prepareNode works out the Node from the user data, and refuses what would keep the real kubelet out.
func (b *Bridge) prepareNode(i Instance, behavior Behavior) (*corev1.Node, error) {
	if i.RootGiB == 0 {
		i.RootGiB = 20
	}
	boot, err := ParseUserData(i.UserData)
	if err != nil {
		return nil, err
	}
	if err := b.options.Cluster.checkBoot(boot); err != nil {
		return nil, err
	}
	if b.options.Boot != nil {
		if err := b.options.Boot(i); err != nil {
			return nil, fmt.Errorf("boot: %w", err)
		}
	}
	facts, ok := b.options.Facts(i.Type)
	if !ok {
		return nil, fmt.Errorf("instance type %q is unknown", i.Type)
	}
	if behavior.DRA {
		facts.Devices = nil
	}
	return i.newNode(boot, facts)
}

// createNode registers the Node under the kubelet's name. A Node that this instance had before is taken into use again;
// while the Node is still that of an instance that had the address before, the kubelet tries again.
func (b *Bridge) createNode(ctx context.Context, i Instance, node *corev1.Node) (back bool, err error) {
	kubelet, err := b.asKubelet(i)
	if err != nil {
		return false, err
	}
	err = retryRequest(ctx, func(ctx context.Context) error {
		_, err := kubelet.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		if _, err = b.getNode(ctx, i); apierrors.IsNotFound(err) {
			return errors.New("its name is taken")
		}
		back = err == nil
		return err
	})
	if err != nil || !back {
		return false, err
	}
	return true, b.updateNode(ctx, i, func(n *corev1.Node) {
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[kwokKey] = "fake"
		n.Spec.Taints = removeTaint(n.Spec.Taints, shutdownTaint)
	})
}

// initializeNode does the cloud-controller-manager's part for a new Node.
func (b *Bridge) initializeNode(ctx context.Context, i Instance) error {
	labels := map[string]string{
		corev1.LabelInstanceTypeStable: i.Type, corev1.LabelTopologyZone: i.Zone,
		corev1.LabelTopologyRegion: b.options.Region,
		corev1.LabelInstanceType:   i.Type, corev1.LabelFailureDomainBetaZone: i.Zone,
		corev1.LabelFailureDomainBetaRegion: b.options.Region,
	}
	if b.options.ZoneID != nil {
		labels["topology.k8s.aws/zone-id"] = b.options.ZoneID(i.Zone)
	}
	err := b.updateNode(ctx, i, func(n *corev1.Node) {
		if n.Spec.ProviderID == "" {
			n.Spec.ProviderID = i.providerID()
		}
		maps.Copy(n.Labels, labels)
		n.Spec.Taints = removeTaint(n.Spec.Taints, uninitialized)
	})
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	return nil
}

// runAgents takes off the startup taints of the node's agents, each in its time.
func (b *Bridge) runAgents(ctx context.Context, i Instance) error {
	agents := slices.SortedFunc(slices.Values(b.options.Agents), func(x, y Agent) int { return int(x.After - y.After) })
	began := time.Now()
	for _, agent := range agents {
		if !waitFor(ctx, agent.After-time.Since(began)) {
			return ctx.Err()
		}
		err := b.updateNode(ctx, i, func(n *corev1.Node) { n.Spec.Taints = removeTaint(n.Spec.Taints, agent.TaintKey) })
		if err != nil {
			return fmt.Errorf("take off startup taint %s: %w", agent.TaintKey, err)
		}
	}
	return nil
}

// markNotReady makes the Node NotReady, as a kubelet does that is being shut down. kwok would make it Ready again at
// once, so it is told first that the node is not its own any more. A stopped instance also gets the cloud provider's
// taint.
func (b *Bridge) markNotReady(ctx context.Context, i Instance, stopped bool) error {
	err := b.updateNode(ctx, i, func(n *corev1.Node) {
		delete(n.Annotations, kwokKey)
		if stopped && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == shutdownTaint }) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: shutdownTaint,
				Effect: corev1.TaintEffectNoSchedule})
		}
	})
	if apierrors.IsNotFound(err) {
		return nil // it never joined
	}
	if err != nil {
		return fmt.Errorf("silence: %w", err)
	}
	err = retryRequest(ctx, func(ctx context.Context) error {
		n, err := b.getNode(ctx, i)
		if err != nil {
			return err
		}
		now := metav1.Now()
		for k := range n.Status.Conditions {
			c := &n.Status.Conditions[k]
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionFalse {
				c.Status, c.Reason, c.Message = corev1.ConditionFalse, "KubeletNotReady", "node is shutting down"
				c.LastTransitionTime, c.LastHeartbeatTime = now, now
			}
		}
		_, err = b.admin.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("silence: %w", err)
	}
	b.logLine(i, "is NotReady: "+i.State)
	return nil
}

// deleteNode deletes the Node of an instance that is no more, as the cloud-controller-manager does.
func (b *Bridge) deleteNode(ctx context.Context, i Instance) error {
	if !waitFor(ctx, b.options.DeleteDelay) {
		return ctx.Err()
	}
	err := retryRequest(ctx, func(ctx context.Context) error {
		n, err := b.getNode(ctx, i)
		if err != nil {
			return err
		}
		uid := n.UID
		return b.admin.CoreV1().Nodes().Delete(ctx, n.Name,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete node: %w", err)
	}
	b.logLine(i, "deleted: the instance does not exist")
	if b.options.CollectPods {
		return boundRequest(ctx, func(ctx context.Context) error { return b.collectPods(ctx, i) })
	}
	return nil
}

// collectPods force-deletes what was bound to the Node.
func (b *Bridge) collectPods(ctx context.Context, i Instance) error {
	pods, err := b.admin.CoreV1().Pods(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + i.PrivateDNS})
	if err != nil {
		return fmt.Errorf("collect pods: %w", err)
	}
	var now int64
	for _, p := range pods.Items {
		err := b.admin.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("collect pod %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	return nil
}

// getNode reads the instance's Node. A Node of the same name that belongs to another instance counts as not found.
func (b *Bridge) getNode(ctx context.Context, i Instance) (*corev1.Node, error) {
	n, err := b.admin.CoreV1().Nodes().Get(ctx, i.PrivateDNS, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if n.Spec.ProviderID != "" && n.Spec.ProviderID != i.providerID() {
		return nil, apierrors.NewNotFound(corev1.Resource("nodes"), i.PrivateDNS+" of "+i.ID)
	}
	return n, nil
}

// updateNode reads, changes and writes the instance's Node until nobody came in between.
func (b *Bridge) updateNode(ctx context.Context, i Instance, do func(*corev1.Node)) error {
	return retryRequest(ctx, func(ctx context.Context) error {
		n, err := b.getNode(ctx, i)
		if err != nil {
			return err
		}
		do(n)
		_, err = b.admin.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		return err
	})
}

func removeTaint(taints []corev1.Taint, key string) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == key })
}
