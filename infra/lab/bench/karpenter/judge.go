package karpenter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/state/cost"
	"sigs.k8s.io/karpenter/pkg/state/virtualpods"
	"sigs.k8s.io/karpenter/pkg/utils/pdb"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
)

// Judge asks Karpenter's disruption controller about a cluster: which nodes it would take, how many its budgets let go,
// and whether it would let a command pass.
type Judge struct {
	c        Cluster
	ctx      context.Context
	clock    *jumping
	store    *objects
	cluster  *state.Cluster
	provider *provider
	prov     *provisioning.Provisioner
	queue    *disruption.Queue
	cost     *cost.ClusterCost
	base     disruptionMethods
	types    map[string]instancetypes.Type
	made     int
	said     lastWords
}

// lastWords keeps the message of the last event.
type lastWords struct{ text string }

// Publish is called by Karpenter.
func (l *lastWords) Publish(all ...events.Event) {
	for _, e := range all {
		l.text = e.Message
	}
}

// disruptionMethods are Karpenter's, with what the validators are made of.
type disruptionMethods struct {
	consolidation                       validators
	empty, static, drift, underutilized disruption.Method
}

// validators let a command pass or say why not.
type validators struct{ empty, underutilized disruption.Validator }

// NewJudge shows the cluster to Karpenter.
func NewJudge(c Cluster) (*Judge, error) {
	j := &Judge{c: c, clock: &jumping{now: c.Now}, provider: &provider{types: c.Market.sold}, store: newObjects(),
		types: c.Market.types}
	minValues := options.MinValuesPolicyStrict
	if c.BestEffort {
		minValues = options.MinValuesPolicyBestEffort
	}
	j.ctx = options.ToContext(context.Background(), &options.Options{
		CPURequests: 1000, IgnoreDRARequests: true, BatchMaxDuration: 10 * time.Second, BatchIdleDuration: time.Second,
		PreferencePolicy: options.PreferencePolicyRespect, MinValuesPolicy: minValues,
		FeatureGates: options.FeatureGates{SpotToSpotConsolidation: true, ReservedCapacity: true, StaticCapacity: true},
	})
	if err := c.fillStore(j.store, j.clock); err != nil {
		return nil, err
	}
	j.cluster = state.NewCluster(j.clock, j.store, j.provider)
	j.cost = cost.NewClusterCost(j.ctx, j.provider, j.store)
	j.prov = provisioning.NewProvisioner(j.store, silent{}, j.provider, j.cluster, j.clock, nil,
		virtualpods.NewVirtualPodCache(j.store))
	j.queue = disruption.NewQueue(j.store, silent{}, j.cluster, j.clock, j.prov)
	j.makeMethods()
	return j, j.syncState()
}

func (j *Judge) makeMethods() {
	c := disruption.MakeConsolidation(j.clock, j.cluster, j.store, j.prov, j.provider, &j.said, j.queue)
	j.base.consolidation = validators{disruption.NewEmptinessValidator(c), disruption.NewMultiConsolidationValidator(c)}
	for _, m := range j.newMethods() {
		switch m.(type) {
		case *disruption.Emptiness:
			j.base.empty = m
		case *disruption.StaticDrift:
			j.base.static = m
		case *disruption.Drift:
			j.base.drift = m
		case *disruption.SingleNodeConsolidation:
			j.base.underutilized = m
		}
	}
}

// syncState lets the state of the cluster see all objects, as its informers do.
func (j *Judge) syncState() error {
	for _, name := range slices.Sorted(maps.Keys(j.store.claims)) {
		n := j.store.claims[name].DeepCopy()
		j.cluster.UpdateNodeClaim(n)
		_ = j.cost.UpdateNodeClaim(j.ctx, n) // an error is a claim of which no price is known
	}
	for _, name := range slices.Sorted(maps.Keys(j.store.nodes)) {
		if err := j.cluster.UpdateNode(j.ctx, j.store.nodes[name].DeepCopy()); err != nil {
			return fmt.Errorf("show node %s: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(j.store.pods)) {
		if err := j.cluster.UpdatePod(j.ctx, j.store.pods[name]); err != nil {
			return fmt.Errorf("show pod %s: %w", name, err)
		}
	}
	for _, name := range j.c.Nominated {
		if n := j.store.nodes[name]; n != nil {
			j.cluster.NominateNodeForPod(j.ctx, n.Spec.ProviderID)
		}
	}
	return nil
}

// Verdict is what Karpenter has to say about a node.
type Verdict struct {
	Claim    string
	Graceful string // why it may not go gracefully, empty when it may
	Eventual string // the same where its terminationGracePeriod bounds what holds it
	Reasons  []api.DisruptionReason
}

// CandidateVerdicts are the verdicts about all nodes that have a claim, sorted by claim.
func (j *Judge) CandidateVerdicts() ([]Verdict, error) {
	pools, types, err := disruption.BuildNodePoolMap(j.ctx, j.store, j.provider)
	if err != nil {
		return nil, fmt.Errorf("list NodePools: %w", err)
	}
	limits, err := pdb.NewLimits(j.ctx, j.store)
	if err != nil {
		return nil, fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	may := map[api.DisruptionReason]map[string]bool{}
	for reason, methods := range map[api.DisruptionReason][]disruption.Method{
		api.DisruptionEmpty: {j.base.empty}, api.DisruptionDrifted: {j.base.drift, j.base.static},
		api.DisruptionUnderutilized: {j.base.underutilized},
	} {
		may[reason] = map[string]bool{}
		for _, m := range methods {
			all, err := j.candidatesOf(m)
			if err != nil {
				return nil, err
			}
			for _, c := range all {
				may[reason][c.NodeClaim.Name] = true
			}
		}
	}
	var out []Verdict
	for _, n := range j.cluster.DeepCopyNodes() {
		if n.NodeClaim == nil {
			continue
		}
		v := Verdict{Claim: n.NodeClaim.Name}
		for class, into := range map[string]*string{disruption.GracefulDisruptionClass: &v.Graceful,
			disruption.EventualDisruptionClass: &v.Eventual} {
			if _, err := disruption.NewCandidate(j.ctx, j.store, silent{}, j.clock, n, limits, pools, types, j.queue,
				class); err != nil {
				*into = err.Error()
			}
		}
		for _, reason := range disruptionReasons() {
			if may[reason][v.Claim] {
				v.Reasons = append(v.Reasons, reason)
			}
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b Verdict) int { return strings.Compare(a.Claim, b.Claim) })
	return out, nil
}

func disruptionReasons() []api.DisruptionReason {
	return []api.DisruptionReason{api.DisruptionDrifted, api.DisruptionEmpty, api.DisruptionUnderutilized}
}

func (j *Judge) candidatesOf(m disruption.Method) ([]*disruption.Candidate, error) {
	all, err := disruption.GetCandidates(j.ctx, j.cluster, j.store, silent{}, j.clock, j.provider, m.ShouldDisrupt,
		m.Class(), j.queue)
	if err != nil {
		return nil, fmt.Errorf("candidates for %s: %w", m.Reason(), err)
	}
	return all, nil
}

// AllowedDisruptions are how many more nodes of each pool may go now for the reason.
func (j *Judge) AllowedDisruptions(reason api.DisruptionReason) (map[string]int, error) {
	left, err := disruption.BuildDisruptionBudgetMapping(j.ctx, j.cluster, j.clock, j.store, j.provider, silent{},
		karpv1.DisruptionReason(reason))
	if err != nil {
		return nil, fmt.Errorf("budgets for %s: %w", reason, err)
	}
	return left, nil
}

// canLaunch reports whether any pool can launch for pods: without one Karpenter's scheduler answers no question.
func (j *Judge) canLaunch() bool {
	_, err := j.prov.NewScheduler(j.ctx, nil, nil, nil)
	return !errors.Is(err, provisioning.ErrNodePoolsNotFound)
}
