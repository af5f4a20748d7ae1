package karpenter

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	reqs "sigs.k8s.io/karpenter/pkg/scheduling"

	api "joiner.sh/pkg/api/v1"
	joinerdisruption "joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
)

// Objection is why Karpenter would not let a command pass.
type Objection struct {
	Rule  string // one of few
	Claim string // the node it is about, empty for the command
	Why   string
}

// Error says it in one line.
func (o *Objection) Error() string { return o.Rule + ": " + o.Why }

func newObjection(rule, format string, args ...any) error {
	return &Objection{Rule: rule, Why: fmt.Sprintf(format, args...)}
}

// ValidateCommand reports what Karpenter has against the command, as an *Objection, and then shows it to Karpenter as
// begun: commands are handed in in the order in which they begin.
func (j *Judge) ValidateCommand(c joinerdisruption.Command) error {
	method := j.methodOf(c)
	all, totals, err := disruption.GetCandidatesWithTotals(j.ctx, j.cluster, j.store, silent{}, j.clock, j.provider,
		method.ShouldDisrupt, method.Class(), j.queue, j.cost)
	if err != nil {
		return fmt.Errorf("candidates for %s: %w", c.Reason, err)
	}
	var set []*disruption.Candidate
	for _, name := range c.Claims {
		i := slices.IndexFunc(all, func(x *disruption.Candidate) bool { return x.NodeClaim.Name == name })
		if i < 0 {
			return &Objection{Rule: "candidate", Claim: name, Why: "it is no candidate for " + string(c.Reason)}
		}
		set = append(set, all[i])
	}
	left, err := j.AllowedDisruptions(c.Reason)
	if err != nil {
		return err
	}
	for _, x := range set {
		if left[x.NodePool.Name]--; left[x.NodePool.Name] < 0 {
			return newObjection("budget", "NodePool %s lets fewer nodes go for %s", x.NodePool.Name, c.Reason)
		}
	}
	objection := j.checkCommand(method, set, totals, c)
	for _, x := range set {
		j.cluster.MarkForDeletion(x.ProviderID())
	}
	return objection
}

func (j *Judge) methodOf(c joinerdisruption.Command) disruption.Method {
	switch {
	case c.Reason == api.DisruptionEmpty:
		return j.base.empty
	case c.Reason == api.DisruptionUnderutilized:
		return j.base.underutilized
	}
	if n := j.store.claims[c.Claims[0]]; n != nil {
		for i := range j.store.pools {
			if p := &j.store.pools[i]; p.Name == n.Labels[karpv1.NodePoolLabelKey] && p.Spec.Replicas != nil {
				return j.base.static
			}
		}
	}
	return j.base.drift
}

// checkCommand returns what the rules of the method have against the command about those candidates. Its replacements
// are there afterwards.
func (j *Judge) checkCommand(method disruption.Method, set []*disruption.Candidate,
	totals map[string]disruption.NodePoolTotals, c joinerdisruption.Command) error {
	switch method {
	case j.base.empty:
		valid, err := j.base.consolidation.empty.Validate(j.ctx, disruption.Command{Candidates: set}, 0)
		if err != nil || len(valid.Candidates) < len(set) {
			return newObjection("empty", "of %d nodes %d may go: %v", len(set), len(valid.Candidates), err)
		}
		return nil
	case j.base.static:
		if err := j.againstDrift(method, set, 1); err != nil {
			return err
		}
		j.cluster.NodePoolState.ReleaseNodeCount(set[0].NodePool.Name, 1) // that of the replacement counts from now on
		return j.addReplacements(c, false)
	case j.base.drift:
		if err := j.addReplacements(c, true); err != nil {
			return err
		}
		return j.againstDrift(method, set, 0)
	}
	if err := j.againstPrice(set, c); err != nil {
		return err
	}
	if approved, _ := disruption.EvaluateBalancedMove(j.ctx, j.commandOf(set, c), totals); !approved {
		return newObjection("balanced", "it saves too little for what it moves")
	}
	if err := j.addReplacements(c, true); err != nil {
		return err
	}
	if !j.canLaunch() {
		return newObjection("pools", "no NodePool can launch")
	}
	if _, err := j.base.consolidation.underutilized.Validate(j.ctx, disruption.Command{Candidates: set},
		0); err != nil {
		return newObjection("room", "with what is launched: %v", err)
	}
	return nil
}

// againstDrift asks for the command about the last of the candidates, the others being on their way out, and whether it
// launches so many.
func (j *Judge) againstDrift(m disruption.Method, set []*disruption.Candidate, launches int) error {
	last := set[len(set)-1]
	for _, x := range set[:len(set)-1] {
		j.cluster.MarkForDeletion(x.ProviderID())
	}
	j.said.text = ""
	cmds, err := m.ComputeCommands(j.ctx, map[string]int{last.NodePool.Name: 1}, last)
	switch {
	case err != nil && !j.canLaunch():
		return newObjection("pools", "no NodePool can launch")
	case err != nil:
		return fmt.Errorf("drift: %w", err)
	case len(cmds) != 1:
		return newObjection("drift", "no command about %s: %s", last.NodeClaim.Name, j.said.text)
	case len(cmds[0].Replacements) != launches:
		return newObjection("room", "%d nodes more are needed", len(cmds[0].Replacements)-launches)
	}
	return nil
}

// againstPrice holds what may be launched against what goes: whatever is launched must be cheaper, in the worst case.
// One for several must be cheaper than any of them that is of a type that it may be.
func (j *Judge) againstPrice(set []*disruption.Candidate, c joinerdisruption.Command) error {
	before, after, spot := 0.0, 0.0, true
	cheapest := map[string]float64{}
	for _, x := range set {
		before += x.Price
		t := x.Labels()[corev1.LabelInstanceTypeStable]
		if cheapest[t] == 0 || x.Price < cheapest[t] {
			cheapest[t] = x.Price
		}
		spot = spot && x.Labels()[karpv1.CapacityTypeLabelKey] == karpv1.CapacityTypeSpot
	}
	for _, l := range c.Launches {
		after += j.worstPrice(l)
	}
	if len(c.Launches) > 0 && after >= before {
		return newObjection("price", "%.4f USD/h for %.4f", after, before)
	}
	if len(c.Launches) == 1 {
		l := c.Launches[0]
		if len(set) > 1 {
			for _, t := range l.Types {
				if p := cheapest[t]; p > 0 && j.worstPrice(l) >= p {
					return newObjection("same-type", "%s for %.4f USD/h is there already", t, p)
				}
			}
		}
		likeForLike := spot && l.Choice.CapacityType == karpv1.CapacityTypeSpot && len(set) == 1
		if likeForLike && len(l.Types) < disruption.MinInstanceTypesForSpotToSpotConsolidation {
			return newObjection("spot-to-spot", "%d types", len(l.Types))
		}
	}
	for _, l := range c.Launches {
		if err := j.againstMinValues(l); err != nil {
			return err
		}
	}
	return nil
}

// againstMinValues counts the values that the types of the launch have of each label for which its pool asks for
// several.
func (j *Judge) againstMinValues(l plan.Launch) error {
	i := slices.IndexFunc(j.store.pools, func(p karpv1.NodePool) bool { return p.Name == l.Pool })
	for _, r := range j.store.pools[i].Spec.Template.Spec.Requirements {
		if r.MinValues == nil {
			continue
		}
		least := *r.MinValues
		if asked, ok := l.Requirements.Get(r.Key); ok && j.c.BestEffort &&
			l.Annotations[api.AnnotationMinValuesRelaxed] == "true" {
			least = int(asked.MinValues) // as few as the pods leave
		}
		values := map[string]bool{}
		for _, name := range l.Types {
			has, _ := j.types[name].Requirements.Get(r.Key)
			for _, value := range has.Values {
				if want := reqs.NewRequirement(r.Key, r.Operator, r.Values...); want.Has(value) {
					values[value] = true
				}
			}
		}
		if len(values) < least {
			return newObjection("minValues", "%d of %d values of %s", len(values), least, r.Key)
		}
	}
	return nil
}

// worstPrice is the most that the launch may cost.
func (j *Judge) worstPrice(l plan.Launch) float64 {
	out := 0.0
	for _, name := range l.Types {
		for _, o := range j.types[name].Offerings {
			if o.Available && o.Meets(l.Requirements) {
				out = max(out, o.Price)
			}
		}
	}
	if out == 0 {
		return math.Inf(1)
	}
	return out
}

// commandOf is the command in Karpenter's terms, with the choice of each launch as its type.
func (j *Judge) commandOf(set []*disruption.Candidate, c joinerdisruption.Command) disruption.Command {
	out := disruption.Command{Candidates: set}
	for _, l := range c.Launches {
		n := &scheduling.NodeClaim{}
		n.Requirements = reqs.NewLabelRequirements(map[string]string{
			corev1.LabelTopologyZone: l.Choice.Zone, karpv1.CapacityTypeLabelKey: l.Choice.CapacityType,
		})
		for _, t := range j.provider.types {
			if t.Name == l.Choice.Type {
				n.InstanceTypeOptions = cloudprovider.InstanceTypes{t}
			}
		}
		out.Results.NewNodeClaims = append(out.Results.NewNodeClaims, n)
		out.Replacements = append(out.Replacements, &disruption.Replacement{NodeClaim: n})
	}
	return out
}

// addReplacements adds the replacements of the command: as nodes that are long ready, else as claims whose nodes are on
// their way.
func (j *Judge) addReplacements(c joinerdisruption.Command, ready bool) error {
	for _, l := range c.Launches {
		j.made++
		node := j.nodeOf(l, fmt.Sprintf("replacement-%d", j.made))
		claim := claimOf(node, j.types[l.Choice.Type])
		claim.Spec.NodeClassRef = classRef()
		claim.Spec.Taints = node.Spec.Taints
		if !ready {
			_ = claim.StatusConditions().Clear(karpv1.ConditionTypeInitialized) // it says whether there was one
			claim.Status.NodeName = ""
		}
		for i := range claim.Status.Conditions {
			claim.Status.Conditions[i].LastTransitionTime = metav1.NewTime(j.c.Now.AddDate(-1, 0, 0))
		}
		j.store.claims[claim.Name] = claim
		j.cluster.UpdateNodeClaim(claim)
		if !ready {
			continue
		}
		j.store.nodes[node.Name] = node
		if err := j.cluster.UpdateNode(j.ctx, node); err != nil {
			return fmt.Errorf("show replacement: %w", err)
		}
	}
	return nil
}

// nodeOf is the node that the launch becomes if it gets its choice, open for all pods.
func (j *Judge) nodeOf(l plan.Launch, name string) *corev1.Node {
	t := j.types[l.Choice.Type]
	labels := t.Requirements.Labels()
	maps.Copy(labels, l.Labels)
	maps.Copy(labels, map[string]string{
		corev1.LabelTopologyZone: l.Choice.Zone, instancetypes.LabelZoneID: l.Choice.ZoneID,
		karpv1.CapacityTypeLabelKey: l.Choice.CapacityType,
		corev1.LabelHostname:        name, karpv1.NodePoolLabelKey: l.Pool, karpv1.NodeRegisteredLabelKey: "true",
		karpv1.NodeInitializedLabelKey: "true",
	})
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels,
			CreationTimestamp: metav1.NewTime(j.c.Now)},
		Spec: corev1.NodeSpec{ProviderID: "aws:///" + l.Choice.Zone + "/" + name},
		Status: corev1.NodeStatus{Capacity: resourceList(t.Capacity), Allocatable: resourceList(t.Allocatable),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for _, x := range l.Taints {
		if !(cluster.Taint{Key: x.Key}).IsNomination() {
			node.Spec.Taints = append(node.Spec.Taints,
				corev1.Taint{Key: x.Key, Value: x.Value, Effect: corev1.TaintEffect(x.Effect)})
		}
	}
	return node
}

// ExpectedAction is what Karpenter would do about the node alone for the reason, if its budgets let it: delete,
// replace, or nothing.
func (j *Judge) ExpectedAction(claim string, reason api.DisruptionReason) (string, error) {
	m := j.methodOf(joinerdisruption.Command{Reason: reason, Claims: []string{claim}})
	all, err := j.candidatesOf(m)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(all, func(x *disruption.Candidate) bool { return x.NodeClaim.Name == claim })
	if i < 0 {
		return "", nil
	}
	defer j.clock.setTime(j.c.Now) // validation waits
	cmds, err := m.ComputeCommands(j.ctx, map[string]int{all[i].NodePool.Name: 1}, all[i])
	if err != nil && j.canLaunch() {
		return "", fmt.Errorf("ask about %s for %s: %w", claim, reason, err)
	}
	if len(cmds) == 0 {
		return "", nil
	}
	return string(cmds[0].Decision()), nil
}
