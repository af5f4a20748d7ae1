package karpenter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/awslabs/operatorpkg/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	reqs "sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/state/cost"
	"sigs.k8s.io/karpenter/pkg/state/virtualpods"
	"sigs.k8s.io/karpenter/pkg/test/v1alpha1"

	"joiner.sh/infra/lab/bench/world"
	"joiner.sh/pkg/cli"
	"joiner.sh/pkg/model/instancetypes"
)

// Disruption runs Karpenter's own disruption controller, its queue and its provisioner on a world: with the gate
// SpotToSpotConsolidation on, and a clock that stands still while it decides and jumps where it would wait.
type Disruption struct {
	w        *world.World
	ctx      context.Context
	clock    *jumping
	store    *objects
	cluster  *state.Cluster
	provider *provider
	prov     *provisioning.Provisioner
	queue    *disruption.Queue
	control  *disruption.Controller
	recorder events.Recorder
}

// NewDisruption shows the world to Karpenter.
func NewDisruption(w *world.World) (*Disruption, error) {
	d := &Disruption{w: w, clock: &jumping{now: w.Now}, recorder: silent{},
		provider: &provider{types: instanceTypes(w.Catalog)}}
	d.ctx = options.ToContext(context.Background(), &options.Options{
		CPURequests: 1000, IgnoreDRARequests: true, BatchMaxDuration: 10 * time.Second, BatchIdleDuration: time.Second,
		PreferencePolicy: options.PreferencePolicyRespect, MinValuesPolicy: options.MinValuesPolicyStrict,
		FeatureGates: options.FeatureGates{SpotToSpotConsolidation: true, ReservedCapacity: true},
	})
	d.store = newObjects()
	for i := range w.Pools {
		p, err := poolOf(&w.Pools[i])
		if err != nil {
			return nil, err
		}
		p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.test.sh",
			Kind: "TestNodeClass", Name: "default"}
		p.StatusConditions().SetTrue(status.ConditionReady)
		p.StatusConditions().SetTrue(karpv1.ConditionTypeNodeClassReady)
		p.StatusConditions().SetTrue(karpv1.ConditionTypeValidationSucceeded)
		d.store.pools = append(d.store.pools, *p)
	}
	d.store.daemons = []appsv1.DaemonSet{{ObjectMeta: metav1.ObjectMeta{Namespace: w.Daemon.Pod.Namespace,
		Name: w.Daemon.Name, UID: "agent"},
		Spec: appsv1.DaemonSetSpec{Template: w.Daemon.Pod}}}
	d.store.budgets = w.Budgets
	d.cluster = state.NewCluster(d.clock, d.store, d.provider)
	costs := cost.NewClusterCost(d.ctx, d.provider, d.store)
	d.prov = provisioning.NewProvisioner(d.store, d.recorder, d.provider, d.cluster, d.clock, nil,
		virtualpods.NewVirtualPodCache(d.store))
	d.queue = disruption.NewQueue(d.store, d.recorder, d.cluster, d.clock, d.prov)
	d.control = d.newController(costs)
	for _, p := range w.Pods {
		p.Object.Status.Phase = corev1.PodRunning
		d.store.pods[p.Object.Name] = p.Object
		d.store.notePlace(p.Object, "")
	}
	for _, n := range w.SortedNodes() {
		if err := d.addNode(n, nil); err != nil {
			return nil, err
		}
	}
	for _, p := range w.Pods {
		if err := d.cluster.UpdatePod(d.ctx, p.Object); err != nil {
			return nil, fmt.Errorf("show pod %s: %w", p.Object.Name, err)
		}
	}
	return d, nil
}

// addNode adds a node and its claim, which is made where none is given, both as they are when the node is initialized.
func (d *Disruption) addNode(n *world.Node, claim *karpv1.NodeClaim) error {
	t := d.w.InstanceType(n.OfferingKey.Type)
	labels := maps.Clone(d.w.NodeLabels(n))
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: types.UID("node-" + n.Name), Labels: labels,
			CreationTimestamp: metav1.NewTime(d.clock.Now())},
		Spec: corev1.NodeSpec{ProviderID: "aws:///" + n.OfferingKey.Zone + "/" + n.Name},
		Status: corev1.NodeStatus{Capacity: resourceList(t.Capacity), Allocatable: resourceList(t.Allocatable),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	made := claimOf(node, t)
	if claim != nil {
		made.Name, made.UID, made.Spec = claim.Name, claim.UID, claim.Spec
	}
	made.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.test.sh", Kind: "TestNodeClass",
		Name: "default"}
	made.StatusConditions().SetTrue(karpv1.ConditionTypeConsolidatable)
	d.store.nodes[n.Name], d.store.claims[made.Name] = node, made
	d.cluster.UpdateNodeClaim(made)
	if err := d.cluster.UpdateNode(d.ctx, node); err != nil {
		return fmt.Errorf("show node %s: %w", n.Name, err)
	}
	return nil
}

// RunPass runs the disruption controller once, and then all that comes of it: launches, the queue, the pods'
// new places, and the provisioner where pods found none. What is measured is the controller's run.
func (d *Disruption) RunPass(context.Context) (acted bool, took cli.MeasuredWork, err error) {
	d.clock.setTime(d.w.Now)
	took = cli.MeasureWork(func() { _, err = d.control.Reconcile(d.ctx) })
	if err != nil {
		return false, took, fmt.Errorf("reconcile: %w", err)
	}
	if acted = !d.queue.IsEmpty(); acted {
		if err := errors.Join(d.launchClaims(), d.refreshState(), d.finishCommands()); err != nil {
			return acted, took, err
		}
		err = d.placePods()
	}
	d.w.Now = d.clock.Now()
	return acted, took, err
}

// refreshState tells the cluster's state which nodes and claims the controller changed.
func (d *Disruption) refreshState() error {
	var errs []error
	for _, name := range d.store.takeChangedNodes() {
		node := d.store.nodes[name]
		d.w.Nodes[name].Closed = slices.ContainsFunc(node.Spec.Taints,
			func(t corev1.Taint) bool { return t.MatchTaint(&karpv1.DisruptedNoScheduleTaint) })
		errs = append(errs, d.cluster.UpdateNode(d.ctx, node))
	}
	return errors.Join(errs...)
}

// launchClaims gives every claim without an instance the cheapest offering that it allows, ready at once.
func (d *Disruption) launchClaims() error {
	for _, name := range slices.Sorted(maps.Keys(d.store.claims)) {
		c := d.store.claims[name]
		if c.Status.ProviderID != "" {
			continue
		}
		pool := c.Labels[karpv1.NodePoolLabelKey]
		n, err := d.w.LaunchNode(pool, d.provider.cheapestOffering(
			reqs.NewNodeSelectorRequirementsWithMinValues(c.Spec.Requirements...)))
		if err != nil {
			return err
		}
		if err := d.addNode(n, c); err != nil {
			return err
		}
	}
	return nil
}

// finishCommands lets the queue see that replacements are ready, and ends the nodes whose claims it deletes.
func (d *Disruption) finishCommands() error {
	for _, cmd := range d.queue.GetCommands() {
		if _, err := d.queue.Reconcile(d.ctx, cmd.Candidates[0].NodeClaim); err != nil {
			return fmt.Errorf("queue: %w", err)
		}
	}
	if !d.queue.IsEmpty() {
		return errors.New("queue: a command waits although its replacements are ready")
	}
	for _, name := range d.store.takeDeletedClaims() {
		c := d.store.claims[name]
		for _, p := range d.w.RemoveNode(c.Status.NodeName) {
			d.store.notePlace(p.Object, c.Status.NodeName)
			d.cluster.DeletePod(types.NamespacedName{Namespace: p.Object.Namespace, Name: p.Object.Name})
			markUnschedulable(p.Object)
		}
		d.cluster.DeleteNode(c.Status.NodeName)
		d.cluster.DeleteNodeClaim(name)
		delete(d.store.nodes, c.Status.NodeName)
		delete(d.store.claims, name)
	}
	return nil
}

// placePods binds the pods that wait, and has nodes made for those that find none.
func (d *Disruption) placePods() error {
	for range 5 {
		for _, p := range d.w.BindPods() {
			d.store.notePlace(p.Object, "")
			p.Object.Status.Phase, p.Object.Status.Conditions = corev1.PodRunning, nil
			if err := d.cluster.UpdatePod(d.ctx, p.Object); err != nil {
				return fmt.Errorf("bind %s: %w", p.Object.Name, err)
			}
		}
		if len(d.w.WaitingPods()) == 0 {
			return nil
		}
		d.clock.setTime(d.clock.Now().Add(time.Minute)) // nominations lapse
		r, err := d.prov.Schedule(d.ctx)
		if err != nil {
			return fmt.Errorf("provision: %w", err)
		}
		if _, err := d.prov.CreateNodeClaims(d.ctx, r.NewNodeClaims); err != nil {
			return fmt.Errorf("provision: %w", err)
		}
		if err := d.launchClaims(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d pods find no node", len(d.w.WaitingPods()))
}

// provider sells what the catalog does.
type provider struct {
	cloudprovider.CloudProvider // nil: a call that is not below must be loud

	types []*cloudprovider.InstanceType
}

func (p *provider) Name() string { return "bench" }

func (p *provider) GetInstanceTypes(context.Context, *karpv1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return p.types, nil
}

func (p *provider) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&v1alpha1.TestNodeClass{}}
}

// cheapestOffering is the cheapest offering that the requirements allow.
func (p *provider) cheapestOffering(want reqs.Requirements) instancetypes.OfferingKey {
	var best instancetypes.OfferingKey
	price := 0.0
	for _, t := range p.types {
		if t.Requirements.Intersects(want) != nil {
			continue
		}
		for _, o := range t.Offerings.Available().Compatible(want) {
			if best.Type == "" || o.Price < price {
				price = o.Price
				best = instancetypes.OfferingKey{Type: t.Name, Zone: o.Requirements.Get(corev1.LabelTopologyZone).Any(),
					CapacityType: o.Requirements.Get(karpv1.CapacityTypeLabelKey).Any()}
			}
		}
	}
	return best
}

// silent is a recorder that keeps nothing.
type silent struct{}

func (silent) Publish(...events.Event) {}
