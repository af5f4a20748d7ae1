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
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/version"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/nodeclass/translate"
)

const (
	notEnded   = "status.phase!=Succeeded,status.phase!=Failed"
	withoutOne = "spec.nodeName=," + notEnded // pods without a node, which the API server finds by index
)

// Reader reads several kinds of objects at once.
type Reader struct {
	*connection
	devices Devices
}

func (r Reader) pods() Pods         { return Pods{r.connection} }
func (r Reader) nodes() Nodes       { return Nodes{r.connection} }
func (r Reader) claims() Claims     { return Claims{r.connection} }
func (r Reader) pools() Pools       { return Pools{r.connection} }
func (r Reader) classes() Classes   { return Classes{r.connection} }
func (r Reader) overlays() Overlays { return Overlays{r.connection} }
func (r Reader) buffers() Buffers   { return Buffers{r.connection} }

// PendingPods lists the pods for which a node should be found or made, sorted, and those that capacity buffers keep
// room for. It costs one page of the pods without a node and one of buffers, however large the cluster is, and is the
// question to ask first.
func (r Reader) PendingPods(ctx context.Context) ([]cluster.Pod, error) {
	out, err := r.pods().listWaiting(ctx)
	if err != nil {
		return nil, err
	}
	room, err := r.buffers().listVirtualPods(ctx)
	if err != nil {
		return nil, err
	}
	out = append(out, room...)
	slices.SortFunc(out, translate.ComparePods)
	return out, nil
}

// ReadSnapshot reads everything about the cluster that a decision may see: pods that have not ended, those that
// capacity buffers keep room for, nodes, claims, pools, classes, overlays, daemons, namespaces and budgets, all sorted.
// Catalog, Unavailable, Instances and Rules are the caller's to fill, and of the classes MemoryOverhead, ReservedENIs
// and LearnedMemoryMiB. Of volumes it has the names of their claims: see WithVolumes. What DRA drivers publish is read
// only when an extended resource is asked for that a node lacks.
func (r Reader) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	return r.buildSnapshot(ctx, func(ctx context.Context) (func() cachedObjects, error) {
		all, err := r.listEverything(ctx)
		return func() cachedObjects { return all }, err
	}, r.listConfiguration)
}

// configuration holds what a snapshot has beside pods, nodes and claims, which people write and which there is little
// of. It is never changed.
type configuration struct {
	room       bufferRoom // of capacity buffers
	pools      []karpv1.NodePool
	daemons    []translate.DaemonTemplate
	namespaces []cluster.Namespace
	stack      map[string]string // annotations of our namespace
	budgets    []cluster.PodDisruptionBudget
	overlays   []cluster.Overlay
	classes    []instancetypes.Class
}

// listConfiguration lists all of it.
func (r Reader) listConfiguration(ctx context.Context) (out configuration, err error) {
	g, gctx := errgroup.WithContext(ctx)
	read := func(f func(context.Context) error) { g.Go(func() error { return f(gctx) }) }
	read(func(ctx context.Context) (err error) { out.room, err = r.buffers().listRoom(ctx); return err })
	read(func(ctx context.Context) (err error) { out.pools, err = r.pools().ListPools(ctx); return err })
	read(func(ctx context.Context) (err error) { out.daemons, err = r.listDaemons(ctx); return err })
	read(func(ctx context.Context) (err error) {
		out.namespaces, out.stack, err = r.listNamespaces(ctx)
		return err
	})
	read(func(ctx context.Context) (err error) { out.budgets, err = r.listBudgets(ctx); return err })
	read(func(ctx context.Context) error {
		all, err := r.overlays().ListOverlays(ctx)
		out.overlays = translatePage(all, translate.Overlay)
		return err
	})
	read(func(ctx context.Context) error {
		all, err := r.classes().ListClasses(ctx)
		out.classes = translatePage(all, nodeclass.DescribeClass)
		return err
	})
	return out, g.Wait()
}

// buildSnapshot gets what there is much of, and the rest, as it is told. What much returns is called last, for what has
// come while the rest was read.
func (r Reader) buildSnapshot(ctx context.Context, much func(context.Context) (func() cachedObjects, error),
	rest func(context.Context) (configuration, error)) (cluster.Snapshot, error) {
	out := cluster.Snapshot{Now: r.now().UTC()}
	var take func() cachedObjects
	var small configuration
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { take, err = much(gctx); return err })
	g.Go(func() (err error) { small, err = rest(gctx); return err })
	if err := g.Wait(); err != nil {
		return cluster.Snapshot{}, err
	}
	large := take()
	out.Namespaces, out.Budgets = slices.Clone(small.namespaces), slices.Clone(small.budgets)
	out.Overlays, out.Classes = slices.Clone(small.overlays), slices.Clone(small.classes)
	out.Pools = translatePage(small.pools, func(p *karpv1.NodePool) cluster.Pool {
		pool := translate.Pool(p, out.Classes)
		pool.Disruption = nodeclass.SleepWith(small.stack, p.Annotations, pool.Disruption)
		return pool
	})
	found := translate.NewPodList(large.sorted, large.memory.take())
	large.memory.lend(found.Pods)
	out.Nodes, out.Claims = large.sortedNodes(), large.sortedClaims()
	out.Pods, out.Daemons = found.Pods, found.SampleDaemons(small.daemons)
	out.Stopped = slices.Clone(small.room.stopped)
	if len(small.room.pods) > 0 {
		out.Pods = append(out.Pods, small.room.pods...)
		slices.SortFunc(out.Pods, translate.ComparePods)
	}
	cluster.ExpectUnscheduled(out.Pods)
	if err := r.devices.addDevices(ctx, &out); err != nil {
		return cluster.Snapshot{}, err
	}
	return out, nil
}

// listEverything lists what there is much of: pods that have not ended, nodes and claims.
func (r Reader) listEverything(ctx context.Context) (out cachedObjects, err error) {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		all, _, err := r.pods().allPods(gctx)
		out.sorted = translate.SortPods(maps.Values(all))
		return err
	})
	g.Go(func() error {
		all, _, err := r.nodes().allNodes(gctx)
		out.nodes = lists.Index(all, func(n cluster.Node) string { return n.UID })
		return err
	})
	g.Go(func() error {
		all, _, err := r.claims().allClaims(gctx)
		out.claims = lists.Index(all, func(n cluster.Claim) string { return n.UID })
		return err
	})
	return out, g.Wait()
}

// listNamespaces are all namespaces; stack are the annotations of ours.
func (r Reader) listNamespaces(ctx context.Context) (out []cluster.Namespace, stack map[string]string, err error) {
	out, _, err = listAll(ctx, r.connection, listQuery{place: namespacePath()},
		func(l *corev1.NamespaceList) []cluster.Namespace {
			return translatePage(l.Items, func(n *corev1.Namespace) cluster.Namespace {
				if n.Name == Namespace {
					stack = n.Annotations
				}
				return translate.Namespace(n)
			})
		})
	slices.SortFunc(out, func(a, b cluster.Namespace) int { return strings.Compare(a.Name, b.Name) })
	return out, stack, err
}

func (r Reader) listBudgets(ctx context.Context) ([]cluster.PodDisruptionBudget, error) {
	out, _, err := listAll(ctx, r.connection, listQuery{place: budgetPath()},
		func(l *policyv1.PodDisruptionBudgetList) []cluster.PodDisruptionBudget {
			return translatePage(l.Items, translate.Budget)
		})
	slices.SortFunc(out, func(a, b cluster.PodDisruptionBudget) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, err
}

// ReadDNSAddress is the address of the cluster's DNS service, empty if there is none.
func (r Reader) ReadDNSAddress(ctx context.Context) (string, error) {
	var s corev1.Service
	err := r.getObject(ctx, apiCall{verb: "get", place: servicePath(), namespace: "kube-system", name: "kube-dns"}, &s)
	if isNotFound(err) || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return "", nil
	}
	return s.Spec.ClusterIP, err
}

// ReadVersion is the cluster's minor version, such as 1.36.
func (r Reader) ReadVersion(ctx context.Context) (string, error) {
	body, err := r.readRaw(ctx, "get the version of the cluster", "/version")
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

// translatePage maps a page of objects.
func translatePage[O, T any](in []O, f func(*O) T) []T {
	out := make([]T, 0, len(in))
	for i := range in {
		out = append(out, f(&in[i]))
	}
	return out
}

func (r Reader) listDaemons(ctx context.Context) ([]translate.DaemonTemplate, error) {
	out, _, err := listAll(ctx, r.connection, listQuery{place: daemonSets()},
		func(l *appsv1.DaemonSetList) []translate.DaemonTemplate {
			return translatePage(l.Items, translate.NewDaemonTemplate)
		})
	slices.SortFunc(out, func(a, b translate.DaemonTemplate) int { return translate.ComparePods(a.Pod, b.Pod) })
	return out, err
}
