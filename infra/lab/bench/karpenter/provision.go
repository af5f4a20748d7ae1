package karpenter

import (
	"context"
	"fmt"
	"maps"
	"slices"

	peerv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	reqs "sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/state/virtualpods"

	"joiner.sh/infra/lab/bench/manifests"
	"joiner.sh/pkg/model/instancetypes"
)

// DecideProvisioning returns what Karpenter's provisioner decides about the cluster in one pass. Sold is what AWS sells
// there.
func DecideProvisioning(
	ctx context.Context, c *manifests.Cluster, sold instancetypes.Catalog,
) (manifests.Outcome, error) {
	ctx = optionsOf(ctx, c.Settings)
	store, err := newReader(c)
	if err != nil {
		return manifests.Outcome{}, err
	}
	clock := &jumping{now: manifests.ClusterTime()}
	seller := classSeller{c: c, sold: sold, byClass: map[string][]*cloudprovider.InstanceType{}}
	known := state.NewCluster(clock, store, seller)
	overlays := nodeoverlay.NewInstanceTypeStore()
	if _, err := nodeoverlay.NewController(clock, store, seller, overlays, known).Reconcile(ctx,
		reconcile.Request{}); err != nil && len(c.NodeOverlays) > 0 {
		return manifests.Outcome{}, fmt.Errorf("apply NodeOverlays: %w", err)
	}
	if err := syncState(ctx, known, store); err != nil {
		return manifests.Outcome{}, err
	}
	prov := provisioning.NewProvisioner(store, silent{}, overlay.Decorate(seller, store, overlays), known, clock, nil,
		virtualpods.NewVirtualPodCache(store))
	r, err := prov.Schedule(ctx)
	if err != nil {
		return manifests.Outcome{}, fmt.Errorf("schedule: %w", err)
	}
	return outcomeOf(r), nil
}

func optionsOf(ctx context.Context, s manifests.Settings) context.Context {
	o := &options.Options{
		CPURequests: 1000, IgnoreDRARequests: true, PreferencePolicy: options.PreferencePolicyRespect,
		MinValuesPolicy: options.MinValuesPolicyStrict,
		FeatureGates:    options.FeatureGates{ReservedCapacity: true, NodeOverlay: true},
	}
	if s.IgnorePreferences {
		o.PreferencePolicy = options.PreferencePolicyIgnore
	}
	if s.RelaxMinValues {
		o.MinValuesPolicy = options.MinValuesPolicyBestEffort
	}
	return options.ToContext(ctx, o)
}

// syncState tells Karpenter's cluster state about everything, as its informers do.
func syncState(ctx context.Context, known *state.Cluster, store *reader) error {
	for _, c := range objectsOf(store, &karpv1.NodeClaim{}) {
		known.UpdateNodeClaim(c)
	}
	for _, n := range objectsOf(store, &corev1.Node{}) {
		if err := known.UpdateNode(ctx, n); err != nil {
			return fmt.Errorf("show node %s: %w", n.Name, err)
		}
	}
	for _, p := range objectsOf(store, &corev1.Pod{}) {
		if err := known.UpdatePod(ctx, p); err != nil {
			return fmt.Errorf("show pod %s: %w", p.Name, err)
		}
	}
	return nil
}

// outcomeOf says what was decided. A new node is the cheapest that its claim allows.
func outcomeOf(r scheduling.Results) manifests.Outcome {
	out := manifests.Outcome{Existing: map[string]string{}, Left: map[string]string{}}
	key := func(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }
	for i, c := range r.NewNodeClaims {
		n := cheapestNode(fmt.Sprintf("new-%03d", i), c)
		for _, p := range c.Pods {
			n.Pods = append(n.Pods, key(p))
		}
		slices.Sort(n.Pods)
		out.New = append(out.New, n)
	}
	for _, n := range r.ExistingNodes {
		for _, p := range n.Pods {
			out.Existing[key(p)] = n.Name()
		}
	}
	for p, err := range r.PodErrors {
		out.Left[key(p)] = err.Error()
	}
	return out
}

// cheapestNode is the node that the claim becomes at the cheapest offering that it allows.
func cheapestNode(name string, c *scheduling.NodeClaim) manifests.NewNode {
	out := manifests.NewNode{NodePool: c.NodePoolName, Name: name, Labels: map[string]string{}, Taints: c.Spec.Taints}
	var best *cloudprovider.InstanceType
	var offering *cloudprovider.Offering
	for _, t := range c.InstanceTypeOptions {
		for _, o := range t.Offerings.Available().Compatible(c.Requirements) {
			if offering == nil || o.Price < offering.Price || o.Price == offering.Price && t.Name < best.Name {
				best, offering = t, o
			}
		}
	}
	if best == nil {
		return out
	}
	for _, set := range []reqs.Requirements{best.Requirements, c.Requirements, offering.Requirements} {
		for key, r := range set {
			if r.Operator() == corev1.NodeSelectorOpIn && r.Len() == 1 {
				out.Labels[key] = r.Any()
			}
		}
	}
	maps.Copy(out.Labels, c.ToNodeClaim().Labels)
	out.Labels[karpv1.NodePoolLabelKey] = c.NodePoolName
	out.InstanceType, out.Zone, out.CapacityType = best.Name, out.Labels[corev1.LabelTopologyZone],
		out.Labels[karpv1.CapacityTypeLabelKey]
	out.Allocatable = best.Allocatable()
	return out
}

// classSeller sells what the EC2NodeClass of a NodePool can have.
type classSeller struct {
	cloudprovider.CloudProvider // nil: a call that is not below must be loud

	c       *manifests.Cluster
	sold    instancetypes.Catalog
	byClass map[string][]*cloudprovider.InstanceType
}

func (s classSeller) Name() string { return "compare" }

func (s classSeller) GetInstanceTypes(_ context.Context, p *karpv1.NodePool) ([]*cloudprovider.InstanceType, error) {
	name := p.Spec.Template.Spec.NodeClassRef.Name
	if _, ok := s.c.FindClass(name); !ok {
		return nil, fmt.Errorf("there is no EC2NodeClass %s", name)
	}
	if _, ok := s.byClass[name]; !ok {
		s.byClass[name] = translateTypes(s.c.ResolveTypes(s.sold, name))
	}
	return s.byClass[name], nil
}

func (s classSeller) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&peerv1.EC2NodeClass{}}
}
