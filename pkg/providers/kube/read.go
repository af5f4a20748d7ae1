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
	"joiner/pkg/model/cluster"
	"joiner/pkg/nodeclass"
	"joiner/pkg/nodeclass/translate"
)

const (
	notEnded   = "status.phase!=Succeeded,status.phase!=Failed"
	withoutOne = "spec.nodeName=," + notEnded // pods without a node, which the API server finds by index
)

// PendingPods lists the pods for which a node should be found or made, sorted, and those that capacity buffers keep
// room for. It costs one page of the pods without a node and one of buffers, however large the cluster is, and is the
// question to ask first.
func (c *Client) PendingPods(ctx context.Context) ([]cluster.Pod, error) {
	out, err := c.listWaiting(ctx)
	if err != nil {
		return nil, err
	}
	room, err := c.listVirtualPods(ctx)
	if err != nil {
		return nil, err
	}
	out = append(out, room...)
	slices.SortFunc(out, translate.ComparePods)
	return out, nil
}

// listWaiting lists the pods that exist and need a node.
func (c *Client) listWaiting(ctx context.Context) ([]cluster.Pod, error) {
	out, version, err := listAll(ctx, c, listQuery{place: podPath(), fields: withoutOne}, newPods,
		func(l *corev1.PodList) []cluster.Pod {
			return slices.DeleteFunc(translatePage(l.Items, waitingFrom),
				func(p cluster.Pod) bool { return !p.Provisionable() })
		})
	if err != nil {
		return nil, err
	}
	c.seen.keepPods(version, out)
	return out, nil
}

func waitingFrom(p *corev1.Pod) cluster.Pod { return translate.ListPod(p).Pod }

// ListClaims lists the NodeClaims whose class is an EC2NodeClass, sorted by name.
func (c *Client) ListClaims(ctx context.Context) ([]cluster.Claim, error) {
	out, _, err := c.allClaims(ctx)
	slices.SortFunc(out, func(a, b cluster.Claim) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

func (c *Client) allClaims(ctx context.Context) (out []cluster.Claim, version string, err error) {
	statuses := map[string]storedStatus{}
	out, version, err = listAll(ctx, c, listQuery{place: claimPath()}, newClaims,
		func(l *karpv1.NodeClaimList) []cluster.Claim {
			mine := onlyOurs(l)
			for i := range mine {
				statuses[string(mine[i].UID)] = storedStatusOf(&mine[i])
			}
			return translatePage(mine, translate.Claim)
		})
	if err == nil {
		c.seen.keepClaims(version, statuses)
	}
	return out, version, err
}

// listClaims lists those of our claims that are asked for, and no further page after one with a claim that is enough.
func (c *Client) listClaims(ctx context.Context, q listQuery, enough func(cluster.Claim) bool) ([]cluster.Claim,
	error) {
	done := false
	q.place, q.enough = claimPath(), func() bool { return done }
	out, _, err := listAll(ctx, c, q, newClaims, func(l *karpv1.NodeClaimList) []cluster.Claim {
		mine := onlyOurs(l)
		c.seen.keepSingleClaims(mine)
		page := translatePage(mine, translate.Claim)
		done = enough != nil && slices.ContainsFunc(page, enough)
		return page
	})
	return out, err
}

func onlyOurs(l *karpv1.NodeClaimList) []karpv1.NodeClaim {
	return slices.DeleteFunc(l.Items, func(n karpv1.NodeClaim) bool { return !translate.IsOurClass(n.Spec.NodeClassRef) })
}

// ListPools lists the NodePools whose class is an EC2NodeClass, sorted by name.
func (c *Client) ListPools(ctx context.Context) ([]karpv1.NodePool, error) {
	out, _, err := listAll(ctx, c, listQuery{place: poolPath()},
		func() *karpv1.NodePoolList { return &karpv1.NodePoolList{} },
		func(l *karpv1.NodePoolList) []karpv1.NodePool {
			return slices.DeleteFunc(l.Items, func(p karpv1.NodePool) bool {
				return !translate.IsOurClass(p.Spec.Template.Spec.NodeClassRef)
			})
		})
	slices.SortFunc(out, func(a, b karpv1.NodePool) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// StaticPools lists the NodePools that have a fixed number of nodes, sorted by name. Whether they are ready is not
// looked at.
func (c *Client) StaticPools(ctx context.Context) ([]cluster.Pool, error) {
	all, err := c.ListPools(ctx)
	if err != nil {
		return nil, err
	}
	var out []cluster.Pool
	for i := range all {
		if all[i].Spec.Replicas != nil {
			out = append(out, translate.Pool(&all[i], nil))
		}
	}
	return out, nil
}

// ListClasses lists the EC2NodeClasses, sorted by name.
func (c *Client) ListClasses(ctx context.Context) ([]awsv1.EC2NodeClass, error) {
	out, _, err := listAll(ctx, c, listQuery{place: classPath()},
		func() *awsv1.EC2NodeClassList { return &awsv1.EC2NodeClassList{} },
		func(l *awsv1.EC2NodeClassList) []awsv1.EC2NodeClass { return l.Items })
	slices.SortFunc(out, func(a, b awsv1.EC2NodeClass) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// ReadClass reads one EC2NodeClass. The error is a *NotFoundError if there is none.
func (c *Client) ReadClass(ctx context.Context, name string) (*awsv1.EC2NodeClass, error) {
	out := &awsv1.EC2NodeClass{}
	if err := c.getObject(ctx, apiCall{verb: "get", place: classPath(), name: name}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ReadSnapshot reads everything about the cluster that a decision may see: pods that have not ended, those that
// capacity buffers keep room for, nodes, claims, pools, classes, overlays, daemons, namespaces and budgets, all sorted.
// Catalog, SoldOut, Instances and Rules are the caller's to fill, and of the classes MemoryOverhead, ReservedENIs and
// LearnedMemoryMiB. Of volumes it has the names of their claims: see WithVolumes. What DRA drivers publish is read only
// when an extended resource is asked for that a node lacks.
func (c *Client) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	return c.buildSnapshot(ctx, c.listEverything)
}

// buildSnapshot gets what there is much of as it is told.
func (c *Client) buildSnapshot(ctx context.Context,
	much func(context.Context) (cachedObjects, error)) (cluster.Snapshot, error) {
	out := cluster.Snapshot{Now: c.now().UTC()}
	var large cachedObjects
	var room []cluster.Pod
	var templates []translate.DaemonTemplate
	var nodePools []karpv1.NodePool
	var stack map[string]string
	g, gctx := errgroup.WithContext(ctx)
	read := func(f func(context.Context) error) { g.Go(func() error { return f(gctx) }) }
	read(func(ctx context.Context) (err error) { large, err = much(ctx); return err })
	read(func(ctx context.Context) (err error) { room, err = c.listVirtualPods(ctx); return err })
	read(func(ctx context.Context) (err error) { nodePools, err = c.ListPools(ctx); return err })
	read(func(ctx context.Context) (err error) { templates, err = c.listDaemons(ctx); return err })
	read(func(ctx context.Context) (err error) { out.Namespaces, stack, err = c.listNamespaces(ctx); return err })
	read(func(ctx context.Context) (err error) { out.Budgets, err = c.listBudgets(ctx); return err })
	read(func(ctx context.Context) error {
		all, err := c.ListOverlays(ctx)
		out.Overlays = translatePage(all, translate.Overlay)
		return err
	})
	read(func(ctx context.Context) error {
		all, err := c.ListClasses(ctx)
		out.Classes = translatePage(all, nodeclass.DescribeClass)
		return err
	})
	if err := g.Wait(); err != nil {
		return cluster.Snapshot{}, err
	}
	out.Pools = translatePage(nodePools, func(p *karpv1.NodePool) cluster.Pool {
		pool := translate.Pool(p, out.Classes)
		pool.Disruption = nodeclass.SleepWith(stack, p.Annotations, pool.Disruption)
		return pool
	})
	found := translate.NewPodList(slices.Collect(maps.Values(large.pods)))
	out.Nodes, out.Claims = large.sortedNodes(), large.sortedClaims()
	out.Pods, out.Daemons = found.Pods, found.SampleDaemons(templates)
	out.Pods = append(out.Pods, room...)
	slices.SortFunc(out.Pods, translate.ComparePods)
	if err := c.addDevices(ctx, &out); err != nil {
		return cluster.Snapshot{}, err
	}
	return out, nil
}

// listEverything lists what there is much of: pods that have not ended, nodes and claims.
func (c *Client) listEverything(ctx context.Context) (cachedObjects, error) {
	out := cachedObjects{versions: map[string]string{}}
	var podsAt, nodesAt, claimsAt string
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		all, version, err := listAll(gctx, c, listQuery{place: podPath(), fields: notEnded}, newPods,
			func(l *corev1.PodList) []translate.ListedPod { return translatePage(l.Items, translate.ListPod) })
		if err == nil {
			c.seen.keepPods(version, translatePage(all, func(s *translate.ListedPod) cluster.Pod { return s.Pod }))
		}
		out.pods, podsAt = byUID(all, func(s translate.ListedPod) string { return s.Pod.UID }), version
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
	out.versions[podPath().plural], out.versions[nodePath().plural], out.versions[claimPath().plural] = podsAt, nodesAt,
		claimsAt
	return out, err
}

func byUID[T any](all []T, uid func(T) string) map[string]T {
	out := make(map[string]T, len(all))
	for _, one := range all {
		out[uid(one)] = one
	}
	return out
}

// ListNodes lists all nodes, sorted by name.
func (c *Client) ListNodes(ctx context.Context) ([]cluster.Node, error) {
	out, _, err := c.allNodes(ctx)
	slices.SortFunc(out, func(a, b cluster.Node) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

func (c *Client) allNodes(ctx context.Context) ([]cluster.Node, string, error) {
	heads := map[string]*corev1.Node{}
	out, version, err := listAll(ctx, c, listQuery{place: nodePath()}, newNodes,
		func(l *corev1.NodeList) []cluster.Node {
			for i := range l.Items {
				heads[string(l.Items[i].UID)] = headOf(&l.Items[i])
			}
			return translatePage(l.Items, translate.Node)
		})
	if err == nil {
		c.seen.keepNodes(version, out, heads)
	}
	return out, version, err
}

// ReadNode reads one node. The error is a *NotFoundError if there is none.
func (c *Client) ReadNode(ctx context.Context, name string) (cluster.Node, error) {
	n := newNode()
	if err := c.getObject(ctx, apiCall{verb: "get", place: nodePath(), name: name}, n); err != nil {
		return cluster.Node{}, err
	}
	c.seen.keepNode(n)
	return translate.Node(n), nil
}

// listNamespaces are all namespaces; stack are the annotations of ours.
func (c *Client) listNamespaces(ctx context.Context) (out []cluster.Namespace, stack map[string]string, err error) {
	out, _, err = listAll(ctx, c, listQuery{place: namespacePath()},
		func() *corev1.NamespaceList { return &corev1.NamespaceList{} },
		func(l *corev1.NamespaceList) []cluster.Namespace {
			return translatePage(l.Items, func(n *corev1.Namespace) cluster.Namespace {
				if n.Name == Namespace {
					stack = n.Annotations
				}
				return cluster.Namespace{Name: n.Name, Labels: n.Labels}
			})
		})
	slices.SortFunc(out, func(a, b cluster.Namespace) int { return strings.Compare(a.Name, b.Name) })
	return out, stack, err
}

func (c *Client) listBudgets(ctx context.Context) ([]cluster.Budget, error) {
	out, _, err := listAll(ctx, c, listQuery{place: budgetPath()},
		func() *policyv1.PodDisruptionBudgetList { return &policyv1.PodDisruptionBudgetList{} },
		func(l *policyv1.PodDisruptionBudgetList) []cluster.Budget {
			return translatePage(l.Items, translate.Budget)
		})
	slices.SortFunc(out, func(a, b cluster.Budget) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, err
}

// ReadDNSAddress is the address of the cluster's DNS service, empty if there is none.
func (c *Client) ReadDNSAddress(ctx context.Context) (string, error) {
	var s corev1.Service
	err := c.getObject(ctx, apiCall{verb: "get", place: servicePath(), namespace: "kube-system", name: "kube-dns"}, &s)
	if isNotFound(err) || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return "", nil
	}
	return s.Spec.ClusterIP, err
}

// ReadVersion is the cluster's minor version, such as 1.36.
func (c *Client) ReadVersion(ctx context.Context) (string, error) {
	body, err := c.readRaw(ctx, "get the version of the cluster", "/version")
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

// translatePage maps a page of objects.
func translatePage[O, T any](in []O, f func(*O) T) []T {
	out := make([]T, 0, len(in))
	for i := range in {
		out = append(out, f(&in[i]))
	}
	return out
}
