package karpenter

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/awslabs/operatorpkg/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	disruptionutils "sigs.k8s.io/karpenter/pkg/utils/disruption"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/workload"
)

// Cluster is what the API server of a cluster holds at one time, and which nodes a provisioner has nominated for pods
// that wait.
type Cluster struct {
	Now        time.Time
	Market     *Market
	Pools      []api.NodePool
	Claims     []api.NodeClaim
	Nodes      []corev1.Node
	Pods       []corev1.Pod
	Budgets    []policyv1.PodDisruptionBudget
	DaemonSets []appsv1.DaemonSet
	Nominated  []string // names of nodes
	BestEffort bool     // minValuesPolicy
	Spare      bool     // there is one more NodePool, which is ready and sells nothing
}

// Market is what is sold, to both sides.
type Market struct {
	zones map[string]string
	types map[string]instancetypes.Type
	sold  []*cloudprovider.InstanceType
}

// NewMarket sells what a plain EC2NodeClass may launch.
func NewMarket(c instancetypes.Catalog) *Market {
	m := &Market{zones: c.Zones, types: map[string]instancetypes.Type{}, sold: instanceTypes(c)}
	for _, t := range instancetypes.ResolveTypes(c, instancetypes.DefaultClass(c), nil, workload.CreationTime()) {
		m.types[t.Name] = t
	}
	return m
}

// classRef is the class of every pool and claim: of a kind that needs no provider.
func classRef() *karpv1.NodeClassReference {
	return &karpv1.NodeClassReference{Group: "karpenter.test.sh", Kind: "TestNodeClass", Name: "default"}
}

// convertObject returns the object in another type with the same JSON.
func convertObject[T any](in any) (*T, error) {
	b, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("translate %T: %w", in, err)
	}
	out := new(T)
	if err := json.Unmarshal(b, out); err != nil {
		return nil, fmt.Errorf("translate %T: %w", in, err)
	}
	return out, nil
}

// fillStore puts the cluster's objects into the store.
func (c *Cluster) fillStore(s *objects, clock *jumping) error {
	pools := map[string]*karpv1.NodePool{}
	for i := range c.Pools {
		p, err := convertObject[karpv1.NodePool](&c.Pools[i])
		if err != nil {
			return err
		}
		p.Spec.Template.Spec.NodeClassRef = classRef()
		s.pools = append(s.pools, *p)
		pools[p.Name] = p
	}
	for i := range c.Claims {
		n, err := convertObject[karpv1.NodeClaim](&c.Claims[i])
		if err != nil {
			return err
		}
		n.Spec.NodeClassRef = classRef()
		setConsolidatable(pools[n.Labels[karpv1.NodePoolLabelKey]], n, clock)
		s.claims[n.Name] = n
	}
	for i := range c.Nodes {
		s.nodes[c.Nodes[i].Name] = c.Nodes[i].DeepCopy()
	}
	for i := range c.Pods {
		p := c.Pods[i].DeepCopy()
		s.pods[p.Name] = p
		s.notePlace(p, "")
	}
	if c.Spare {
		p := karpv1.NodePool{}
		p.Name = "spare"
		p.Spec.Template.Spec.NodeClassRef = classRef()
		p.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: *resource.NewQuantity(0, resource.DecimalSI)}
		p.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
			{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpNotIn,
				Values: slices.Sorted(maps.Keys(c.Market.zones))}} // it adds no domains for spreads
		p.StatusConditions().SetTrue(status.ConditionReady)
		p.StatusConditions().SetTrue(karpv1.ConditionTypeNodeClassReady)
		p.StatusConditions().SetTrue(karpv1.ConditionTypeValidationSucceeded)
		s.pools = append(s.pools, p)
	}
	s.daemons, s.budgets = c.DaemonSets, c.Budgets
	return nil
}

// setConsolidatable does to the claim's condition what Karpenter's controller of that condition does.
func setConsolidatable(p *karpv1.NodePool, n *karpv1.NodeClaim, clock *jumping) {
	conditions := n.StatusConditions(status.WithClock(clock))
	if p == nil {
		return // nobody looks at it
	}
	if p.Spec.Disruption.ConsolidateAfter.Duration == nil || !conditions.IsTrue(karpv1.ConditionTypeInitialized) ||
		disruptionutils.IsUnderConsolidateAfter(p, n, clock) {
		_ = conditions.Clear(karpv1.ConditionTypeConsolidatable) // it says whether there was one
		return
	}
	conditions.SetTrue(karpv1.ConditionTypeConsolidatable)
}
