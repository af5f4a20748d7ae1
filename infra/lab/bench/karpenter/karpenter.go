// Package karpenter runs Karpenter's own scheduler on a workload file, as its provisioner does: default options, one
// worker, preferences respected. It is the peer that the bench puts beside Joiner's packer.
//
// Instance types are those that instancetypes.ResolveTypes gives, which a test of that package holds against
// Karpenter's provider. Reading the cluster and making objects is not part of what is measured, NewTopology,
// NewScheduler and Solve are.
package karpenter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/utils/nodepool"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/workload"
)

// launchTypes is how many instance types Karpenter hands to a launch.
const launchTypes = 60

// PrepareProcess tells Karpenter's packages which labels the AWS provider knows, as that provider does when it is
// linked in, and turns its log off. It is called once.
func PrepareProcess() {
	log.SetLogger(logr.Discard())
	karpv1.WellKnownLabels = karpv1.WellKnownLabels.Insert(awsv1.WellKnownLabels()...).Insert(instancetypes.LabelZoneID)
	karpv1.RestrictedLabelDomains = karpv1.RestrictedLabelDomains.Insert(awsv1.Group)
	scheduling.MaxInstanceTypes = launchTypes
	cloudprovider.ReservationIDLabel = instancetypes.LabelReservationID
}

// Input is a workload in Karpenter's terms.
type Input struct {
	file    workload.File
	pods    []*corev1.Pod
	daemons []*corev1.Pod
	refused map[string][]string // full reasons of the pods that no API server would take, by group
	pools   []*karpv1.NodePool
	types   map[string][]*cloudprovider.InstanceType
	store   *store
	cluster *state.Cluster
	nodes   state.StateNodes
}

// TranslateWorkload translates the workload. The context only carries options.
func TranslateWorkload(f workload.File, c instancetypes.Catalog) (*Input, error) {
	ctx := withOptions(context.Background())
	in := &Input{file: f, refused: map[string][]string{}, types: map[string][]*cloudprovider.InstanceType{},
		store: newStore()}
	all := instanceTypes(c)
	for i := range f.Pools {
		p, err := poolOf(&f.Pools[i])
		if err != nil {
			return nil, err
		}
		if nodepool.IsStatic(p) {
			continue
		}
		in.pools = append(in.pools, p)
		in.types[p.Name] = all
	}
	nodepool.OrderByWeight(in.pools)
	in.addPods()
	in.cluster = state.NewCluster(clock.RealClock{}, in.store, nil)
	if err := in.addNodes(ctx, c); err != nil {
		return nil, err
	}
	in.nodes = in.cluster.DeepCopyNodes().Active()
	return in, nil
}

func poolOf(p any) (*karpv1.NodePool, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("translate NodePool: %w", err)
	}
	out := &karpv1.NodePool{}
	if err := json.Unmarshal(b, out); err != nil {
		return nil, fmt.Errorf("translate NodePool: %w", err)
	}
	return out, nil
}

func withOptions(ctx context.Context) context.Context {
	return options.ToContext(injection.WithControllerName(ctx, "provisioner"), &options.Options{
		CPURequests: 1000, IgnoreDRARequests: true,
		PreferencePolicy: options.PreferencePolicyRespect, MinValuesPolicy: options.MinValuesPolicyStrict,
	})
}

// Solve is the part that is measured. It stops when the context does, and then leaves the rest of the pods unplaced.
func (in *Input) Solve(ctx context.Context) (scheduling.Results, error) {
	ctx = withOptions(ctx)
	opts := []scheduling.Options{
		scheduling.DisableReservedCapacityFallback, scheduling.NumConcurrentReconciles(1),
		scheduling.MinValuesPolicy(options.MinValuesPolicyStrict),
	}
	topology, err := scheduling.NewTopology(ctx, in.store, in.cluster, in.nodes, in.pools, in.types, in.pods, opts...)
	if err != nil {
		return scheduling.Results{}, fmt.Errorf("make Karpenter's topology: %w", err)
	}
	s := scheduling.NewScheduler(ctx, in.store, in.pools, in.cluster, in.nodes, topology, in.types, in.daemons,
		events.NewRecorder(&record.FakeRecorder{}), clock.RealClock{}, nil, nil, opts...)
	r, err := s.Solve(ctx, in.pods)
	if err != nil && ctx.Err() == nil {
		return r, fmt.Errorf("solve: %w", err)
	}
	return r, nil
}

// GroupedPlacement says in groups what Karpenter decided. Type, zone and capacity type are those of the cheapest
// offering that a claim allows.
func (in *Input) GroupedPlacement(r scheduling.Results) workload.Placement {
	names := in.file.IndexNames()
	out := workload.Placement{Tool: "karpenter", Workload: in.file.Name, Pods: in.file.Pending(),
		NodeClaims: []workload.NodeClaim{},
		OnExisting: []workload.OnNode{}, Unplaced: []workload.Unplaced{}}
	placed := map[string]int{}
	group := func(pods []*corev1.Pod) map[string]int {
		m := map[string]int{}
		for _, p := range pods {
			g := names.GroupOf(p.Namespace + "/" + p.Name)
			m[g]++
			placed[g]++
		}
		return m
	}
	r = r.TruncateInstanceTypes(withOptions(context.Background()), launchTypes)
	for _, c := range r.NewNodeClaims {
		claim := cheapestClaim(c)
		claim.Pods = group(c.Pods)
		out.HourlyUSD += claim.HourlyUSD
		out.NodeClaims = append(out.NodeClaims, claim)
	}
	for _, n := range r.ExistingNodes {
		if len(n.Pods) > 0 {
			out.OnExisting = append(out.OnExisting, workload.OnNode{Node: n.Name(), Pods: group(n.Pods)})
		}
	}
	reasons := map[string]string{}
	for p, err := range r.PodErrors { // the reason of one pod stands for its group, that of the first by name
		g := names.GroupOf(p.Namespace + "/" + p.Name)
		if text := err.Error(); reasons[g] == "" || text < reasons[g] {
			reasons[g] = text
		}
	}
	pending := func(g string, count int) {
		if n := count - placed[g]; n > 0 {
			why := append(slices.Clone(in.refused[g]), cmp.Or(reasons[g], "not reached in the time given"))
			out.Unplaced = append(out.Unplaced, workload.Unplaced{Group: g, Count: n, Reasons: why})
		}
	}
	for _, g := range in.file.Groups {
		pending(g.Name, g.Count)
	}
	for i := range in.file.Pods {
		pending(workload.PodKey(&in.file.Pods[i]), 1)
	}
	return out
}

func cheapestClaim(c *scheduling.NodeClaim) workload.NodeClaim {
	out := workload.NodeClaim{NodePool: c.NodePoolName}
	for _, t := range c.InstanceTypeOptions {
		out.TypeOptions = append(out.TypeOptions, t.Name)
		for _, o := range t.Offerings.Available().Compatible(c.Requirements) {
			zone, capacity := o.Requirements.Get(corev1.LabelTopologyZone).Any(),
				o.Requirements.Get(karpv1.CapacityTypeLabelKey).Any()
			better := out.InstanceType == "" || o.Price < out.HourlyUSD ||
				o.Price == out.HourlyUSD && strings.Join([]string{t.Name, zone, capacity},
					" ") < strings.Join([]string{out.InstanceType, out.Zone, out.CapacityType}, " ")
			if better {
				out.InstanceType, out.Zone, out.CapacityType, out.HourlyUSD = t.Name, zone, capacity, o.Price
			}
		}
	}
	return out
}
