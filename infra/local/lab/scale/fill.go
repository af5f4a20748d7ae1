package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/env"
)

//go:embed manifest.yaml
var manifest []byte

const (
	mayWait  = 5 * time.Minute
	mayFill  = 20 * time.Minute // until everybody has seen every pod
	look     = 250 * time.Millisecond
	models   = 4    // nodes that are launched in earnest, at most, and of which the others are copies
	fitsOnce = 5000 // millicores of a pod that shares no node with its like
	ofBurst  = 250  // millicores of a pod of a burst

	burstLabel = "scale.example.com/burst" // of manifest.yaml
)

// cluster is a filled cluster with what changes it.
type cluster struct {
	*env.Env
	meter  *meter
	store  *store
	nodes  []string // that were filled, with a kubelet of this program
	filled map[string]bool
	apps   []app
	sizes  map[string]int // of one object of each kind, in bytes
}

// model is a node that Joiner launched, with its claim and instance.
type model struct {
	node     *corev1.Node
	claim    *unstructured.Unstructured
	instance awsemulator.Instance
}

// fillCluster makes a cluster of so many nodes and pods.
func (c *cluster) fillCluster(ctx context.Context, nodes, pods int) error {
	if err := c.Kube.ApplyManifest(ctx, manifest); err != nil {
		return err
	}
	found, err := c.launchModels(ctx, min(models, nodes-1))
	if err != nil {
		return err
	}
	now := metav1.NewTime(time.Now().Add(-time.Hour))
	c.filled, c.sizes = map[string]bool{}, map[string]int{}
	c.nodes = make([]string, max(0, nodes-len(found)))
	if err := forEach(ctx, len(c.nodes), func(ctx context.Context, i int) error {
		return c.addNode(ctx, i, found[i%len(found)], now)
	}); err != nil {
		return err
	}
	for _, n := range c.nodes {
		c.filled[n] = true
	}
	if err := c.fillPods(ctx, pods, now); err != nil {
		return err
	}
	return c.measureSizes(ctx)
}

// launchModels has Joiner launch so many nodes, of which the others are copies.
func (c *cluster) launchModels(ctx context.Context, models int) ([]model, error) {
	if _, err := c.Host.InvokeFunction(ctx, c.FunctionName("refresh"), "", nil); err != nil {
		return nil, err
	}
	for i := range models {
		if err := c.addPod(ctx, waitingPod(fmt.Sprintf("model-%d", i), fitsOnce)); err != nil {
			return nil, err
		}
	}
	if _, err := c.Host.InvokeFunction(ctx, c.FunctionName("provision"), "Event", nil); err != nil {
		return nil, err
	}
	err := c.waitUntil(ctx, fmt.Sprintf("%d nodes are initialized", models), func() (bool, error) {
		claims, err := c.Kube.Dynamic.Resource(env.NodeClaims()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		n := 0
		for _, o := range claims.Items {
			if isTrue(o, "Initialized") {
				n++
			}
		}
		return n >= models, nil
	})
	if err != nil {
		return nil, err
	}
	if err := c.Host.WaitIdle(ctx); err != nil {
		return nil, err
	}
	// it marks them as Consolidatable, as nodes are that have been in service for a while
	if _, err := c.Host.InvokeFunction(ctx, c.FunctionName("disrupt"), "", nil); err != nil {
		return nil, err
	}
	if err := c.Host.WaitIdle(ctx); err != nil {
		return nil, err
	}
	return c.readModels(ctx)
}

func (c *cluster) readModels(ctx context.Context) (found []model, err error) {
	claims, err := c.Kube.Dynamic.Resource(env.NodeClaims()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	byID := map[string]awsemulator.Instance{}
	for _, i := range c.Cloud.DescribedInstances() {
		byID["aws:///"+i.Zone+"/"+i.ID] = i
	}
	for _, o := range claims.Items {
		name, _, err := unstructured.NestedString(o.Object, "status", "nodeName")
		if err != nil || name == "" {
			return nil, fmt.Errorf("claim %s has no node: %w", o.GetName(), err)
		}
		node, err := c.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		found = append(found, model{node, &o, byID[node.Spec.ProviderID]})
	}
	if len(found) == 0 {
		return nil, errors.New("no node was launched")
	}
	return found, nil
}

func isTrue(o unstructured.Unstructured, condition string) bool {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range all {
		if m, ok := one.(map[string]any); ok && m["type"] == condition {
			return m["status"] == "True"
		}
	}
	return false
}

// addNode stores a node with its instance, claim and lease.
func (c *cluster) addNode(ctx context.Context, i int, of model, now metav1.Time) error {
	claim, uid := fmt.Sprintf("scale-%05d", i), newUID()
	in, err := awsemulator.CopyInstance(c.Cloud, of.instance.ID)
	if err != nil {
		return err
	}
	c.Cloud.ChangeTags(in.ID, func(tags map[string]string) {
		for key, value := range tags {
			switch value {
			case of.node.Name:
				tags[key] = in.PrivateDNSName
			case of.claim.GetName():
				tags[key] = claim
			case string(of.claim.GetUID()):
				tags[key] = string(uid)
			}
		}
	})
	text, err := of.claim.MarshalJSON()
	if err != nil {
		return err
	}
	text, err = copyClaim(text, of.instance.ID, in.ID, of.node.Name, in.PrivateDNSName, of.claim.GetName(), claim,
		string(of.claim.GetUID()), string(uid))
	if err != nil {
		return err
	}
	c.nodes[i] = in.PrivateDNSName
	node := copyNode(of.node, in.PrivateDNSName, "aws:///"+in.Zone+"/"+in.ID, in.PrivateIP, now)
	for k := range node.OwnerReferences {
		if o := &node.OwnerReferences[k]; o.UID == of.claim.GetUID() {
			o.UID, o.Name = uid, claim
		}
	}
	if err := c.store.putRaw(ctx, "karpenter.sh/nodeclaims/"+claim, text); err != nil {
		return err
	}
	if err := c.renewLease(ctx, node.Name); err != nil {
		return err
	}
	return c.store.putObject(ctx, "minions/"+node.Name, corev1.SchemeGroupVersion.WithKind("Node"), node)
}

// renewLease stores a node's lease as its kubelet does each ten seconds.
func (c *cluster) renewLease(ctx context.Context, node string) error {
	holder, seconds, now := node, int32(40), metav1.NowMicro()
	return c.store.putObject(ctx, "leases/kube-node-lease/"+node, coordinationv1.SchemeGroupVersion.WithKind("Lease"),
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node, Namespace: "kube-node-lease", UID: newUID()},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now}})
}

// fillPods stores the pods first and then what they belong to, whose controller would make others meanwhile.
func (c *cluster) fillPods(ctx context.Context, pods int, now metav1.Time) error {
	if err := c.createNamespaces(ctx); err != nil {
		return err
	}
	var daemons []app
	for i := range daemonsOnNode {
		daemons = append(daemons, newApp("DaemonSet", fmt.Sprintf("daemon-%d", i), len(c.nodes), 50))
	}
	ordinary := max(0, pods-daemonsOnNode*len(c.nodes))
	for left, i := ordinary, 0; left > 0; i++ {
		n := min(podsPerApp, left)
		c.apps = append(c.apps, teamApp(i, n))
		left -= n
	}
	type placed struct {
		app
		node string
	}
	var all []placed
	for _, n := range c.nodes {
		for _, d := range daemons {
			all = append(all, placed{d, n})
		}
	}
	at := 0
	for _, a := range c.apps {
		for range a.replicas {
			all = append(all, placed{a, c.nodes[at%len(c.nodes)]})
			at++
		}
	}
	if err := forEach(ctx, len(all), func(ctx context.Context, i int) error {
		return c.storePod(ctx, all[i].newPod(i, all[i].node, now))
	}); err != nil {
		return err
	}
	if err := c.awaitPods(ctx); err != nil {
		return err
	}
	return c.storeOwners(ctx, daemons, now)
}

// storePod stores a pod as it is, bound and running.
func (c *cluster) storePod(ctx context.Context, p *corev1.Pod) error {
	return c.store.putObject(ctx, "pods/"+p.Namespace+"/"+p.Name, corev1.SchemeGroupVersion.WithKind("Pod"), p)
}

// createNamespaces makes the namespaces of the teams.
func (c *cluster) createNamespaces(ctx context.Context) error {
	for i := range teams {
		if _, err := c.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: teamNamespace(i)}}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create namespace: %w", err)
		}
	}
	return nil
}

// awaitPods waits until those who watch the API server have had time to see the pods.
func (c *cluster) awaitPods(ctx context.Context) error {
	one, err := c.Kube.CoreV1().Pods(namespace).Create(ctx, waitingPod("last", 1), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	err = c.untilWithin(ctx, mayFill, "the scheduler sees a pod made after the others", func() (bool, error) {
		p, err := c.Kube.CoreV1().Pods(namespace).Get(ctx, one.Name, metav1.GetOptions{})
		return err == nil && p.Spec.NodeName != "", err
	})
	if err != nil {
		return err
	}
	now := int64(0)
	return c.Kube.CoreV1().Pods(namespace).Delete(ctx, one.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
}

func (c *cluster) storeOwners(ctx context.Context, daemons []app, now metav1.Time) error {
	for i, a := range c.apps {
		if err := c.store.putObject(ctx, "replicasets/"+a.namespace+"/"+a.name,
			appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
			a.replicaSet(now)); err != nil {
			return err
		}
		if i%budgetEach > 0 {
			continue
		}
		if err := c.store.putObject(ctx, "poddisruptionbudgets/"+a.namespace+"/"+a.name,
			policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), a.newBudget(now)); err != nil {
			return err
		}
	}
	for _, a := range daemons {
		if err := c.store.putObject(ctx, "daemonsets/"+a.namespace+"/"+a.name,
			appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
			a.daemonSet(now)); err != nil {
			return err
		}
	}
	return nil
}

// measureSizes reads how large one object of each kind is in the store.
func (c *cluster) measureSizes(ctx context.Context) error {
	for kind, prefix := range map[string]string{"pod": "pods/" + teamNamespace(0) + "/app-", "node": "minions/" + c.nodes[0],
		"NodeClaim": "karpenter.sh/nodeclaims/scale-"} {
		n, err := c.store.sizeOfFirst(ctx, prefix)
		if err != nil {
			return err
		}
		c.sizes[kind] = n
	}
	return nil
}

// waitingPod is a pod that nobody owns.
func waitingPod(name string, milliCPU int64) *corev1.Pod {
	p := newApp("", name, 1, milliCPU).podTemplate()
	requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse("64Mi")}
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests}
	p.Labels = map[string]string{"scale": "waiting"}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: p.Labels}, Spec: p.Spec}
}

// burstPod is one of the pods that only nodes of their own burst are for, so that none there is takes them.
func burstPod(burst string, i int) *corev1.Pod {
	p := waitingPod(fmt.Sprintf("%s-%d", burst, i), ofBurst)
	p.Spec.NodeSelector = map[string]string{burstLabel: burst}
	p.Spec.Tolerations = append(p.Spec.Tolerations,
		corev1.Toleration{Key: burstLabel, Operator: corev1.TolerationOpExists})
	return p
}

func (c *cluster) addPod(ctx context.Context, p *corev1.Pod) error {
	if _, err := c.Kube.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	return nil
}

// waitUntil asks until it is so.
func (c *cluster) waitUntil(ctx context.Context, what string, so func() (bool, error)) error {
	return c.untilWithin(ctx, mayWait, what, so)
}

func (c *cluster) untilWithin(ctx context.Context, limit time.Duration, what string, so func() (bool, error)) error {
	for end := time.Now().Add(limit); ; {
		ok, err := so()
		if ok {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("wait until %s: not after %s (%w)", what, limit, errors.Join(err, errors.New("it is not so")))
		}
		if err := waitFor(ctx, look); err != nil {
			return err
		}
	}
}

func waitFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
