package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/version"

	awsv1 "joiner/pkg/api/aws/v1"
	karpv1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
	"joiner/pkg/nodeclass"
)

const (
	notEnded   = "status.phase!=Succeeded,status.phase!=Failed"
	withoutOne = "spec.nodeName=," + notEnded // pods without a node, which the API server finds by index
)

// Homeless lists the pods for which a node should be found or made, sorted, and those that capacity buffers keep room for. It
// costs one page of the pods without a node and one of buffers, however large the cluster is, and is the question to ask first.
// Volumes are not looked at.
func (c *Client) Homeless(ctx context.Context) ([]cluster.Pod, error) {
	out, err := c.waiting(ctx)
	if err != nil {
		return nil, err
	}
	room, err := c.virtual(ctx)
	if err != nil {
		return nil, err
	}
	out = append(out, room...)
	slices.SortFunc(out, comparePods)
	return out, nil
}

// waiting lists the pods that exist and need a node.
func (c *Client) waiting(ctx context.Context) ([]cluster.Pod, error) {
	out, version, err := list(ctx, c, query{place: pods(), fields: withoutOne}, newPods, func(l *corev1.PodList) []cluster.Pod {
		return slices.DeleteFunc(translated(l.Items, podFrom), func(p cluster.Pod) bool { return !p.Provisionable() })
	})
	if err != nil {
		return nil, err
	}
	c.seen.pods(version, out)
	return out, nil
}

// Claims lists the NodeClaims whose class is an EC2NodeClass, sorted by name.
func (c *Client) Claims(ctx context.Context) ([]cluster.Claim, error) {
	statuses := map[string]storedStatus{}
	out, version, err := c.claims(ctx, "", statuses)
	if err != nil {
		return nil, err
	}
	c.seen.claims(version, statuses)
	slices.SortFunc(out, func(a, b cluster.Claim) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// claims lists those of our claims that the label selector selects, and notes their statuses as stored in the map, if there is one.
func (c *Client) claims(ctx context.Context, selector string, statuses map[string]storedStatus) (out []cluster.Claim, version string, err error) {
	return list(ctx, c, query{place: claims(), labels: selector}, newClaims, func(l *karpv1.NodeClaimList) []cluster.Claim {
		mine := slices.DeleteFunc(l.Items, func(n karpv1.NodeClaim) bool { return !ours(n.Spec.NodeClassRef) })
		if statuses != nil {
			for i := range mine {
				status := mine[i].Status // a copy, or the whole page would stay in memory
				statuses[string(mine[i].UID)] = storedStatus{mine[i].ResourceVersion, &status}
			}
		}
		return translated(mine, claimFrom)
	})
}

// Pools lists the NodePools whose class is an EC2NodeClass, sorted by name.
func (c *Client) Pools(ctx context.Context) ([]karpv1.NodePool, error) {
	out, _, err := list(ctx, c, query{place: pools()}, func() *karpv1.NodePoolList { return &karpv1.NodePoolList{} },
		func(l *karpv1.NodePoolList) []karpv1.NodePool {
			return slices.DeleteFunc(l.Items, func(p karpv1.NodePool) bool { return !ours(p.Spec.Template.Spec.NodeClassRef) })
		})
	slices.SortFunc(out, func(a, b karpv1.NodePool) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// StaticPools lists the NodePools that have a fixed number of nodes, sorted by name. Whether they are ready is not looked at.
func (c *Client) StaticPools(ctx context.Context) ([]cluster.Pool, error) {
	all, err := c.Pools(ctx)
	if err != nil {
		return nil, err
	}
	var out []cluster.Pool
	for i := range all {
		if all[i].Spec.Replicas != nil {
			out = append(out, poolFrom(&all[i], nil))
		}
	}
	return out, nil
}

// Classes lists the EC2NodeClasses, sorted by name.
func (c *Client) Classes(ctx context.Context) ([]awsv1.EC2NodeClass, error) {
	out, _, err := list(ctx, c, query{place: classes()}, func() *awsv1.EC2NodeClassList { return &awsv1.EC2NodeClassList{} },
		func(l *awsv1.EC2NodeClassList) []awsv1.EC2NodeClass { return l.Items })
	slices.SortFunc(out, func(a, b awsv1.EC2NodeClass) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// Class reads one EC2NodeClass. The error is a *NotFoundError if there is none.
func (c *Client) Class(ctx context.Context, name string) (*awsv1.EC2NodeClass, error) {
	out := &awsv1.EC2NodeClass{}
	if err := c.get(ctx, call{verb: "get", place: classes(), name: name}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Snapshot reads everything about the cluster that a decision may see: pods that have not ended, those that capacity buffers keep
// room for, nodes, claims, pools, classes, overlays, daemons, namespaces and budgets, all sorted. Catalog, SoldOut, Instances and Rules are the caller's to fill, and of
// the classes MemoryOverhead, ReservedENIs and LearnedMemoryMiB. Volumes, their claims and storage classes
// are read only when a pod that needs a node uses one.
func (c *Client) Snapshot(ctx context.Context) (cluster.Snapshot, error) {
	out := cluster.Snapshot{Now: c.now().UTC()}
	var found podList
	var room []cluster.Pod
	var templates []daemon
	var nodePools []karpv1.NodePool
	var stack map[string]string
	g, gctx := errgroup.WithContext(ctx)
	read := func(f func(context.Context) error) { g.Go(func() error { return f(gctx) }) }
	read(func(ctx context.Context) (err error) { found, err = c.pods(ctx); return err })
	read(func(ctx context.Context) (err error) { room, err = c.virtual(ctx); return err })
	read(func(ctx context.Context) (err error) { out.Nodes, err = c.Nodes(ctx); return err })
	read(func(ctx context.Context) (err error) { out.Claims, err = c.Claims(ctx); return err })
	read(func(ctx context.Context) (err error) { nodePools, err = c.Pools(ctx); return err })
	read(func(ctx context.Context) (err error) { templates, err = c.daemons(ctx); return err })
	read(func(ctx context.Context) (err error) { out.Namespaces, stack, err = c.namespaces(ctx); return err })
	read(func(ctx context.Context) (err error) { out.Budgets, err = c.budgets(ctx); return err })
	read(func(ctx context.Context) error {
		all, err := c.Overlays(ctx)
		out.Overlays = translated(all, overlayFrom)
		return err
	})
	read(func(ctx context.Context) error {
		all, err := c.Classes(ctx)
		out.Classes = translated(all, nodeclass.Describe)
		return err
	})
	if err := g.Wait(); err != nil {
		return cluster.Snapshot{}, err
	}
	out.Pools = translated(nodePools, func(p *karpv1.NodePool) cluster.Pool {
		pool := poolFrom(p, out.Classes)
		pool.Disruption = nodeclass.SleepWith(stack, p.Annotations, pool.Disruption)
		return pool
	})
	out.Pods, out.Daemons = found.pods, found.samples(templates)
	if err := c.addVolumes(ctx, out, found.withVolumes); err != nil {
		return cluster.Snapshot{}, err
	}
	out.Pods = append(out.Pods, room...)
	slices.SortFunc(out.Pods, comparePods)
	return out, nil
}

// pods reads all pods that have not ended.
func (c *Client) pods(ctx context.Context) (podList, error) {
	out := podList{withVolumes: map[string][]string{}, newest: map[string]liveDaemon{}}
	all, version, err := list(ctx, c, query{place: pods(), fields: notEnded}, newPods, func(l *corev1.PodList) []cluster.Pod {
		return translated(l.Items, func(p *corev1.Pod) cluster.Pod {
			pod := podFrom(p)
			if names := claimNames(p); len(names) > 0 {
				out.withVolumes[pod.Key()] = names
			}
			out.notice(p, pod)
			return pod
		})
	})
	if err != nil {
		return podList{}, err
	}
	c.seen.pods(version, all)
	slices.SortFunc(all, comparePods)
	out.pods = all
	return out, nil
}

// Nodes lists all nodes, sorted by name.
func (c *Client) Nodes(ctx context.Context) ([]cluster.Node, error) {
	out, version, err := list(ctx, c, query{place: nodes()}, newNodes,
		func(l *corev1.NodeList) []cluster.Node { return translated(l.Items, nodeFrom) })
	if err != nil {
		return nil, err
	}
	c.seen.nodes(version, out)
	slices.SortFunc(out, func(a, b cluster.Node) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Node reads one node. The error is a *NotFoundError if there is none.
func (c *Client) Node(ctx context.Context, name string) (cluster.Node, error) {
	n := newNode()
	if err := c.get(ctx, call{verb: "get", place: nodes(), name: name}, n); err != nil {
		return cluster.Node{}, err
	}
	return nodeFrom(n), nil
}

// namespaces are all namespaces; stack are the annotations of ours.
func (c *Client) namespaces(ctx context.Context) (out []cluster.Namespace, stack map[string]string, err error) {
	out, _, err = list(ctx, c, query{place: namespaces()}, func() *corev1.NamespaceList { return &corev1.NamespaceList{} },
		func(l *corev1.NamespaceList) []cluster.Namespace {
			return translated(l.Items, func(n *corev1.Namespace) cluster.Namespace {
				if n.Name == Namespace {
					stack = n.Annotations
				}
				return cluster.Namespace{Name: n.Name, Labels: n.Labels}
			})
		})
	slices.SortFunc(out, func(a, b cluster.Namespace) int { return strings.Compare(a.Name, b.Name) })
	return out, stack, err
}

func (c *Client) budgets(ctx context.Context) ([]cluster.Budget, error) {
	out, _, err := list(ctx, c, query{place: budgets()},
		func() *policyv1.PodDisruptionBudgetList { return &policyv1.PodDisruptionBudgetList{} },
		func(l *policyv1.PodDisruptionBudgetList) []cluster.Budget { return translated(l.Items, budgetFrom) })
	slices.SortFunc(out, func(a, b cluster.Budget) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, err
}

// DNSAddress is the address of the cluster's DNS service, empty if there is none.
func (c *Client) DNSAddress(ctx context.Context) (string, error) {
	var s corev1.Service
	err := c.get(ctx, call{verb: "get", place: services(), namespace: "kube-system", name: "kube-dns"}, &s)
	if isNotFound(err) || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return "", nil
	}
	return s.Spec.ClusterIP, err
}

// Version is the cluster's minor version, such as 1.36.
func (c *Client) Version(ctx context.Context) (string, error) {
	body, err := c.raw(ctx, "get the version of the cluster", "/version")
	if err != nil {
		return "", err
	}
	var v version.Info
	if err := json.Unmarshal(body, &v); err != nil {
		return "", fmt.Errorf("get the version of the cluster: %w", err)
	}
	digits := strings.TrimRight(v.Minor, "+")
	if v.Major == "" || digits == "" {
		return "", fmt.Errorf("get the version of the cluster: the answer has none: %.100s", body)
	}
	return v.Major + "." + digits, nil
}

func newPods() *corev1.PodList         { return &corev1.PodList{} }
func newNodes() *corev1.NodeList       { return &corev1.NodeList{} }
func newClaims() *karpv1.NodeClaimList { return &karpv1.NodeClaimList{} }

// translated maps a page of objects.
func translated[O, T any](in []O, f func(*O) T) []T {
	out := make([]T, 0, len(in))
	for i := range in {
		out = append(out, f(&in[i]))
	}
	return out
}
