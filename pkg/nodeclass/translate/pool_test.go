package translate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

func TestPoolIsReadyOnlyWithItsClass(t *testing.T) {
	classes := []instancetypes.Class{{Name: "good", Ready: true}, {Name: "bad", Message: "no subnet"}}
	for _, c := range []struct{ text, class, message string }{
		{`{}`, "good", ""},
		{`{}`, "bad", "its EC2NodeClass bad is not ready: no subnet"},
		{`{}`, "gone", "its EC2NodeClass gone does not exist"},
		{`{conditions: [{type: Ready, status: "True"}]}`, "good", ""},
		{`{conditions: [{type: ValidationSucceeded, status: "False", message: bad label}, {type: Ready, status: "False"}]}`, "good",
			"ValidationSucceeded is False: bad label"},
	} {
		p := &karpv1.NodePool{Status: *read[karpv1.NodePoolStatus](t, c.text)}
		p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: c.class}
		if got := Pool(p, classes); got.Message != c.message || got.Ready != (c.message == "") {
			t.Errorf("status %s with class %s: ready %t, %q; want %q", c.text, c.class, got.Ready, got.Message, c.message)
		}
	}
}

// An amount that cannot be read stops the pool, and nothing is taken for it.
func TestWhatANodeCostsItsOwner(t *testing.T) {
	for text, want := range map[string]float64{"0.04": 0.04, "0": 0, "-1": -1, "much": -1, "": -1, "NaN": -1} {
		p := &karpv1.NodePool{}
		p.Annotations = map[string]string{karpv1.AnnotationNodeOverheadUSD: text}
		p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "good"}
		got := Pool(p, []instancetypes.Class{{Name: "good", Ready: true}})
		switch {
		case want < 0 && (got.Ready || got.DeclaredNodeUSD != nil || !strings.Contains(got.Message, "write USD per hour")):
			t.Errorf("%q: %v, ready %t, %q; want a refusal", text, got.DeclaredNodeUSD, got.Ready, got.Message)
		case want >= 0 && (!got.Ready || got.DeclaredNodeUSD == nil || *got.DeclaredNodeUSD != want):
			t.Errorf("%q: %v, ready %t, %q; want %v", text, got.DeclaredNodeUSD, got.Ready, got.Message, want)
		}
	}
}

// What the decisions take from a PodDisruptionBudget, in both forms that its numbers have.
func TestBudget(t *testing.T) {
	for text, want := range map[string]cluster.PodDisruptionBudget{
		`{spec: {maxUnavailable: 1}, status: {disruptionsAllowed: 2}}`:               {DisruptionsAllowed: 2},
		`{spec: {maxUnavailable: 0}}`:                                                {FullyBlocking: true},
		`{spec: {maxUnavailable: "0%"}}`:                                             {FullyBlocking: true},
		`{spec: {maxUnavailable: "10%"}}`:                                            {},
		`{spec: {minAvailable: "100%"}}`:                                             {FullyBlocking: true},
		`{spec: {minAvailable: 100}}`:                                                {},
		`{spec: {minAvailable: 1, unhealthyPodEvictionPolicy: AlwaysAllow}}`:         {AlwaysAllowUnready: true},
		`{spec: {minAvailable: 1, unhealthyPodEvictionPolicy: IfHealthyBudget}}`:     {},
		`{metadata: {namespace: a, name: b}, spec: {selector: {}, minAvailable: 1}}`: {Namespace: "a", Name: "b", Selector: &cluster.Selector{}},
		// its controller says that none of its pods may ever be missing
		`{spec: {minAvailable: 1}, status: {expectedPods: 1, desiredHealthy: 1, currentHealthy: 1}}`:     {FullyBlocking: true, HealthyEnough: true},
		`{spec: {minAvailable: "70%"}, status: {expectedPods: 3, desiredHealthy: 3, currentHealthy: 2}}`: {FullyBlocking: true},
		`{spec: {minAvailable: 5}, status: {expectedPods: 3, desiredHealthy: 5, currentHealthy: 3}}`:     {FullyBlocking: true},
		// that one of them may be, though none but one that is not healthy may go now
		`{spec: {minAvailable: 2}, status: {expectedPods: 3, desiredHealthy: 2, currentHealthy: 2}}`:                                                   {HealthyEnough: true},
		`{spec: {minAvailable: 2}, status: {expectedPods: 3, desiredHealthy: 2, currentHealthy: 1}}`:                                                   {},
		`{metadata: {generation: 2}, spec: {minAvailable: 2}, status: {observedGeneration: 1, expectedPods: 3, desiredHealthy: 2, currentHealthy: 2}}`: {},
		`{spec: {minAvailable: 0}, status: {expectedPods: 3}}`:                                                                                         {},
		// of a moment with more pods than are expected
		`{spec: {minAvailable: 1}, status: {expectedPods: 1, desiredHealthy: 1, currentHealthy: 2, disruptionsAllowed: 1}}`: {DisruptionsAllowed: 1, HealthyEnough: true},
		// of an older specification
		`{metadata: {generation: 2}, spec: {minAvailable: 1}, status: {observedGeneration: 1, expectedPods: 1, desiredHealthy: 1}}`: {},
		`{metadata: {generation: 2}, spec: {minAvailable: 1}, status: {observedGeneration: 2, expectedPods: 1, desiredHealthy: 1}}`: {FullyBlocking: true},
		// nobody looked at it, or it has no pods
		`{spec: {minAvailable: 1}, status: {desiredHealthy: 1}}`: {},
	} {
		if diff := cmp.Diff(want, Budget(read[policyv1.PodDisruptionBudget](t, text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// A pool that was stored with a value that no label can have is not launched from: its NodeClaims would be refused.
func TestPoolRequiresLabelValues(t *testing.T) {
	for text, want := range map[string]string{
		`{key: team, operator: In, values: [a, ""]}`:          "",
		`{key: team, operator: Gt, values: ["4"]}`:            "",
		`{key: team, operator: In, values: [a, "a b"]}`:       `no label team can have the value "a b"`,
		`{key: team, operator: NotIn, values: ["a\x1b[31m"]}`: `no label team can have the value "a\x1b[31m"`,
	} {
		p := &karpv1.NodePool{}
		p.Spec.Template.Spec.Requirements = []karpv1.Requirement{*read[karpv1.Requirement](t, text)}
		p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "good"}
		got := Pool(p, []instancetypes.Class{{Name: "good", Ready: true}})
		if got.Message != want || got.Ready != (want == "") {
			t.Errorf("%s: ready %t, %q; want %q", text, got.Ready, got.Message, want)
		}
	}
}

// A pool with replicas is static, also with none.
func TestStaticPool(t *testing.T) {
	for text, want := range map[string]cluster.Pool{`{}`: {}, `{replicas: 0}`: {Static: true}, `{replicas: 3}`: {Static: true, Replicas: 3}} {
		p := &karpv1.NodePool{Spec: *read[karpv1.NodePoolSpec](t, text)}
		p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "good"}
		if got := Pool(p, nil); got.Static != want.Static || got.Replicas != want.Replicas {
			t.Errorf("%s: static %t with %d nodes", text, got.Static, got.Replicas)
		}
	}
}

// A pool that was edited since refresh looked at it is not launched from, and says that refresh is to look again.
func TestPoolIsUnseenWhenEdited(t *testing.T) {
	classes := []instancetypes.Class{{Name: "good", Ready: true}}
	const seen = `{conditions: [{type: Ready, status: "True", observedGeneration: 3}]}`
	gone := metav1.NewTime(at("10:00:00"))
	for _, c := range []struct {
		what          string
		status        string
		generation    int64
		deleted       *metav1.Time
		unseen, ready bool
	}{
		{"as it was looked at", seen, 3, nil, false, true},
		{"edited since", seen, 4, nil, true, false},
		{"edited and deleted", seen, 4, &gone, false, false},
		{"never looked at", `{}`, 4, nil, false, true},
		{"looked at by somebody who does not tell generations", `{conditions: [{type: Ready, status: "True"}]}`, 4, nil, false, true},
	} {
		p := &karpv1.NodePool{Status: *read[karpv1.NodePoolStatus](t, c.status)}
		p.Generation, p.DeletionTimestamp = c.generation, c.deleted
		p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Name: "good"}
		if got := Pool(p, classes); got.Unseen != c.unseen || got.Ready != c.ready {
			t.Errorf("%s: unseen %t and ready %t, want %t and %t", c.what, got.Unseen, got.Ready, c.unseen, c.ready)
		}
	}
}
