package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
	out, _, err := c.allClaims(ctx)
	slices.SortFunc(out, func(a, b cluster.Claim) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

func (c *Client) allClaims(ctx context.Context) (out []cluster.Claim, version string, err error) {
	statuses := map[string]storedStatus{}
	out, version, err = list(ctx, c, query{place: claims()}, newClaims, func(l *karpv1.NodeClaimList) []cluster.Claim {
		mine := onlyOurs(l)
		for i := range mine {
			statuses[string(mine[i].UID)] = storedStatusOf(&mine[i])
		}
		return translated(mine, claimFrom)
	})
	if err == nil {
		c.seen.claims(version, statuses)
	}
	return out, version, err
}

// claims lists those of our claims that are asked for, and no further page after one with a claim that is enough.
func (c *Client) claims(ctx context.Context, q query, enough func(cluster.Claim) bool) ([]cluster.Claim, error) {
	done := false
	q.place, q.enough = claims(), func() bool { return done }
	out, _, err := list(ctx, c, q, newClaims, func(l *karpv1.NodeClaimList) []cluster.Claim {
		mine := onlyOurs(l)
		c.seen.few(mine)
		page := translated(mine, claimFrom)
		done = enough != nil && slices.ContainsFunc(page, enough)
		return page
	})
	return out, err
}

func onlyOurs(l *karpv1.NodeClaimList) []karpv1.NodeClaim {
	return slices.DeleteFunc(l.Items, func(n karpv1.NodeClaim) bool { return !ours(n.Spec.NodeClassRef) })
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
// are read only when a pod that needs a node uses one, and what DRA drivers publish only when an extended resource is asked for that a
// node lacks.
func (c *Client) Snapshot(ctx context.Context) (cluster.Snapshot, error) {
	return c.snapshot(ctx, c.everything)
}

// snapshot gets what there is much of as it is told.
func (c *Client) snapshot(ctx context.Context, much func(context.Context) (bulk, error)) (cluster.Snapshot, error) {
	out := cluster.Snapshot{Now: c.now().UTC()}
	var large bulk
	var room []cluster.Pod
	var templates []daemon
	var nodePools []karpv1.NodePool
	var stack map[string]string
	g, gctx := errgroup.WithContext(ctx)
	read := func(f func(context.Context) error) { g.Go(func() error { return f(gctx) }) }
	read(func(ctx context.Context) (err error) { large, err = much(ctx); return err })
	read(func(ctx context.Context) (err error) { room, err = c.virtual(ctx); return err })
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
	found := podListOf(slices.Collect(maps.Values(large.pods)))
	out.Nodes, out.Claims = large.sortedNodes(), large.sortedClaims()
	out.Pods, out.Daemons = found.pods, found.samples(templates)
	if err := c.addVolumes(ctx, out, found.withVolumes); err != nil {
		return cluster.Snapshot{}, err
	}
	out.Pods = append(out.Pods, room...)
	slices.SortFunc(out.Pods, comparePods)
	if err := c.addDevices(ctx, &out); err != nil {
		return cluster.Snapshot{}, err
	}
	return out, nil
}

// everything lists what there is much of: pods that have not ended, nodes and claims.
func (c *Client) everything(ctx context.Context) (bulk, error) {
	out := bulk{versions: map[string]string{}}
	var podsAt, nodesAt, claimsAt string
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		all, version, err := list(gctx, c, query{place: pods(), fields: notEnded}, newPods, func(l *corev1.PodList) []storedPod { return translated(l.Items, stored) })
		if err == nil {
			c.seen.pods(version, translated(all, func(s *storedPod) cluster.Pod { return s.pod }))
		}
		out.pods, podsAt = byUID(all, func(s storedPod) string { return s.pod.UID }), version
		return err
	})
	g.Go(func() error {
		all, version, err := c.allNodes(gctx)
		out.nodes, nodesAt = byUID(all, func(n cluster.Node) string { return n.UID }), version
		return err
	})
	g.Go(func() error {
		all, version, err := c.allClaims(gctx)
		out.claims, claimsAt = byUID(all, func(n cluster.Claim) string { return n.UID }), version
		return err
	})
	err := g.Wait()
	out.versions[pods().plural], out.versions[nodes().plural], out.versions[claims().plural] = podsAt, nodesAt, claimsAt
	return out, err
}

func byUID[T any](all []T, uid func(T) string) map[string]T {
	out := make(map[string]T, len(all))
	for _, one := range all {
		out[uid(one)] = one
	}
	return out
}

// Nodes lists all nodes, sorted by name.
func (c *Client) Nodes(ctx context.Context) ([]cluster.Node, error) {
	out, _, err := c.allNodes(ctx)
	slices.SortFunc(out, func(a, b cluster.Node) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

func (c *Client) allNodes(ctx context.Context) ([]cluster.Node, string, error) {
	heads := map[string]*corev1.Node{}
	out, version, err := list(ctx, c, query{place: nodes()}, newNodes, func(l *corev1.NodeList) []cluster.Node {
		for i := range l.Items {
			heads[string(l.Items[i].UID)] = headOf(&l.Items[i])
		}
		return translated(l.Items, nodeFrom)
	})
	if err == nil {
		c.seen.nodes(version, out, heads)
	}
	return out, version, err
}

// Node reads one node. The error is a *NotFoundError if there is none.
func (c *Client) Node(ctx context.Context, name string) (cluster.Node, error) {
	n := newNode()
	if err := c.get(ctx, call{verb: "get", place: nodes(), name: name}, n); err != nil {
		return cluster.Node{}, err
	}
	c.seen.head(n)
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
