package translate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/annotations"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclass"
)

func decimalText(n int64) string { return strconv.FormatInt(n, 10) }

// Pool translates a NodePool. It is ready when its own conditions, if it has any yet, and its class say so.
func Pool(p *karpv1.NodePool, classes []instancetypes.Class) cluster.Pool {
	t := p.Spec.Template
	out := cluster.Pool{
		Name:          p.Name,
		UID:           string(p.UID),
		Deleting:      p.DeletionTimestamp != nil,
		Static:        p.Spec.Replicas != nil,
		Labels:        stableKeys(t.Labels),
		Annotations:   t.Annotations,
		Taints:        Taints(t.Spec.Taints),
		StartupTaints: Taints(t.Spec.StartupTaints),
		Hash:          p.Hash(),
		Disruption:    nodeclass.ReadDisruption(p),
		Replicas:      ptr.Deref(p.Spec.Replicas, 0),
		Weight:        ptr.Deref(p.Spec.Weight, 0),
		ExpireAfter:   ptr.Deref(t.Spec.ExpireAfter.Duration, 0),
	}
	out.Counted, out.Uncounted = Amounts(p.Status.Resources), len(p.Status.Resources) == 0
	if told := p.Annotations[karpv1.AnnotationZonalShifts]; told != "" {
		out.ToldShifts = strings.Split(told, ",")
	}
	if t.Spec.NodeClassRef != nil {
		out.Class = t.Spec.NodeClassRef.Name
	}
	if d := t.Spec.TerminationGracePeriod; d != nil {
		out.TerminationGrace = &d.Duration
	}
	limits := corev1.ResourceList(p.Spec.Limits)
	out.Limits = Amounts(limits)
	for name := range limits {
		out.Limited = append(out.Limited, string(name))
	}
	priceProblem := addPrices(p, &out)
	slices.Sort(out.Limited)
	var requirementProblem string
	out.Requirements, requirementProblem = poolRequirements(p)
	out.Message = cmp.Or(poolProblem(p, classes), requirementProblem, priceProblem)
	out.Ready = out.Message == ""
	ready, written := p.StatusConditions().Get(karpv1.ConditionReady)
	out.Unseen = !out.Deleting && written && ready.ObservedGeneration != 0 && ready.ObservedGeneration != p.Generation
	return out
}

// poolRequirements translates the pool's requirements and says what is wrong with them, or nothing. A value that no
// label can have stops the pool, as in Karpenter: the API server refuses NodeClaims that carry it.
func poolRequirements(p *karpv1.NodePool) (set requirements.Set, problem string) {
	set, err := requirementsFrom(p.Spec.Template.Spec.Requirements)
	if err != nil {
		return set, err.Error()
	}
	for _, r := range set.All() {
		problem = cmp.Or(problem, valueRefusal(r))
	}
	return set, problem
}

// addPrices takes over what the annotations say about what nodes may cost and do cost, and says what of that is wrong,
// or nothing. What nobody understands stops the pool: plans would be made without a limit, or at wrong prices.
func addPrices(p *karpv1.NodePool, out *cluster.Pool) (problem string) {
	said, problems := annotations.ReadPool(p.Annotations)
	if said.LimitUSD != nil {
		out.Limits = out.Limits.With(cluster.LimitUSD, int64(math.Round(*said.LimitUSD*1e6)))
		out.Limited = append(out.Limited, cluster.LimitUSD)
	}
	out.DeclaredNodeUSD = said.NodeOverheadUSD
	for _, wrong := range problems {
		if wrong.Stops == annotations.StopsLaunches {
			problem = cmp.Or(problem, wrong.Message)
		}
	}
	return problem
}

// poolProblem says why the pool cannot be used, or nothing.
func poolProblem(p *karpv1.NodePool, classes []instancetypes.Class) string {
	if len(p.Status.Conditions) > 0 && !p.StatusConditions().IsTrue(karpv1.ConditionReady) {
		for _, t := range []string{karpv1.ConditionValidationSucceeded, karpv1.ConditionNodeClassReady,
			karpv1.ConditionReady} {
			if c, ok := p.StatusConditions().Get(t); ok && c.Status != metav1.ConditionTrue {
				return fmt.Sprintf("%s is %s: %s", t, c.Status, cmp.Or(c.Message, c.Reason))
			}
		}
		return "its conditions are of an older generation"
	}
	name := p.Spec.Template.Spec.NodeClassRef.Name
	i := slices.IndexFunc(classes, func(c instancetypes.Class) bool { return c.Name == name })
	switch {
	case i < 0:
		return "its EC2NodeClass " + name + " does not exist"
	case !classes[i].Ready:
		return "its EC2NodeClass " + name + " is not ready: " + classes[i].Message
	}
	return ""
}

// mostBudgetValues and mostBudgetText bound the keys and values of a budget's selector, and their bytes: it is compared
// with the pods of its namespace, again for each drain. Real ones have a few keys.
const mostBudgetValues, mostBudgetText = 64, 4 << 10

// Budget translates a PodDisruptionBudget. One that selects by too much counts for all pods of its namespace.
func Budget(b *policyv1.PodDisruptionBudget) cluster.PodDisruptionBudget {
	out := cluster.PodDisruptionBudget{
		Namespace: b.Namespace, Name: b.Name, Selector: selectorFrom(b.Spec.Selector),
		DisruptionsAllowed: b.Status.DisruptionsAllowed,
	}
	size := &podSize{}
	if size.addSelector(b.Spec.Selector); size.values > mostBudgetValues || size.text > mostBudgetText {
		out.Selector, out.SelectsAll = &cluster.Selector{}, true
	}
	if m := b.Spec.MaxUnavailable; m != nil {
		out.FullyBlocking = m.Type == intstr.Int && m.IntVal == 0 || m.Type == intstr.String && m.StrVal == "0%"
	}
	if m := b.Spec.MinAvailable; m != nil {
		out.FullyBlocking = out.FullyBlocking || m.Type == intstr.String && m.StrVal == "100%"
	}
	st := b.Status
	if st.ObservedGeneration >= b.Generation && st.DisruptionsAllowed == 0 && st.ExpectedPods > 0 {
		out.FullyBlocking = out.FullyBlocking || st.DesiredHealthy >= st.ExpectedPods
	}
	out.HealthyEnough = st.ObservedGeneration >= b.Generation && st.DesiredHealthy > 0 &&
		st.CurrentHealthy >= st.DesiredHealthy
	out.AlwaysAllowUnready = ptr.Deref(b.Spec.UnhealthyPodEvictionPolicy, "") == policyv1.AlwaysAllow
	return out
}
