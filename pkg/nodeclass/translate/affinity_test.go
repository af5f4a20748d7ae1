package translate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/requirements"
)

// affine is a pod that waits, with this node affinity.
func affine(t *testing.T, text string) *corev1.Pod {
	return read[corev1.Pod](t, "{metadata: {name: p}, spec: {affinity: {nodeAffinity: {"+text+"}}}}")
}

// A preference asks for nothing that the API server refuses in a NodeClaim, and for no value that no label can have.
func TestPreferencesThatNoClaimMayName(t *testing.T) {
	for _, c := range []struct{ terms, want string }{
		{"{key: kubernetes.io/hostname, operator: NotIn, values: [a]}", ""},
		{"{key: kubernetes.io/hostname, operator: In, values: [a]}", ""},
		{"{key: kubernetes.io/hostname, operator: NotIn, values: [a]}, {key: team, operator: Exists}", "team exists"},
		{"{key: kubernetes.io/hostname, operator: In, values: [a]}, {key: team, operator: Exists}", ""},
		{"{key: kubernetes.io/hostname, operator: Exists}, {key: team, operator: Exists}", "team exists"},
		{"{key: karpenter.sh/nodepool-hash, operator: DoesNotExist}", ""},
		{"{key: karpenter.sh/provisioner-name, operator: DoesNotExist}, {key: team, operator: Exists}", ""},
		{"{key: karpenter.sh/initialized, operator: In, values: ['true']}", ""},
		{"{key: karpenter.k8s.aws/colour, operator: NotIn, values: [red]}, {key: team, operator: Exists}", "team exists"},
		{"{key: karpenter.k8s.aws/colour, operator: In, values: [red]}, {key: team, operator: Exists}", ""},
		{"{key: team, operator: In, values: [a, ';--anonymous-auth=true#']}", "team in (a)"},
		{"{key: team, operator: In, values: [';--anonymous-auth=true#']}, {key: x, operator: Exists}", ""},
		{"{key: team, operator: NotIn, values: ['a b', c]}", "team not in (c)"},
		{"{key: team, operator: NotIn, values: ['a b']}", ""},
		{"{key: team, operator: NotIn, values: []}", ""},
		{"{key: size, operator: Gt, values: ['3']}", "size >= 4"},
		{"{key: size, operator: Gt, values: ['-3']}", "size >= 0"},
		{"{key: size, operator: Lt, values: ['-3']}", ""},
		{"{key: karpenter.sh/nodepool, operator: In, values: [a]}", "karpenter.sh/nodepool in (a)"},
	} {
		p := Pod(affine(t, "preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: ["+
			c.terms+"]}}]"))
		var got []string
		for _, w := range p.NodePrefers {
			got = append(got, requirements.NewSet(w.Requirements...).String())
		}
		if text := strings.Join(got, " or "); text != c.want || len(p.Unmodelled) > 0 {
			t.Errorf("%s: prefers %q, want %q; unmodelled %q", c.terms, text, c.want, p.Unmodelled)
		}
	}
}

// One of several required terms that no new node can meet falls away. Where all are such, the pod says why.
func TestRequiredTermsThatNoNewNodeMeets(t *testing.T) {
	const host, amd64 = "{key: kubernetes.io/hostname, operator: In, values: [a]}", "{key: kubernetes.io/arch, operator: In, values: [amd64]}"
	for _, c := range []struct {
		terms string
		want  string
		why   []string
	}{
		{"{matchExpressions: [" + host + "]}, {matchExpressions: [" + amd64 + "]}", "kubernetes.io/arch in (amd64)", nil},
		{"{matchFields: [{key: metadata.name, operator: In, values: [a]}]}, {matchExpressions: [" + amd64 + "]}",
			"kubernetes.io/arch in (amd64)", nil},
		{"{matchExpressions: [{key: karpenter.sh/x, operator: Exists}]}, {matchExpressions: [" + amd64 + "]}",
			"kubernetes.io/arch in (amd64)", nil},
		{"{matchExpressions: [{key: team, operator: In, values: ['a b']}]}, {matchExpressions: [" + amd64 + "]}",
			"kubernetes.io/arch in (amd64)", nil},
		{"{matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [a]}]}",
			"kubernetes.io/hostname not in (a)", nil},
		{"{matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]}", "kubernetes.io/hostname not in ()", nil},
		{"{matchExpressions: [{key: karpenter.sh/x, operator: DoesNotExist}]}", "karpenter.sh/x does not exist", nil},
		{"{matchExpressions: [" + host + ", " + amd64 + "]}", "",
			[]string{"node affinity: it selects its node by kubernetes.io/hostname, which no new node can promise"}},
		{"{matchExpressions: [{key: kubernetes.io/hostname, operator: DoesNotExist}]}", "",
			[]string{"node affinity: it selects its node by kubernetes.io/hostname, which no new node can promise"}},
		{"{matchExpressions: [{key: karpenter.sh/provisioner-name, operator: DoesNotExist}]}", "",
			[]string{"node affinity: the label karpenter.sh/provisioner-name is restricted, pods may not ask for it"}},
		{"{matchExpressions: [{key: notkarpenter.sh/x, operator: Exists}]}, {matchFields: [{key: metadata.name, operator: In, values: [a]}]}", "",
			[]string{"node affinity: the label notkarpenter.sh/x is restricted, nodes do not carry it",
				"node affinity by field (metadata.name in matchFields) is not supported"}},
		{"{matchExpressions: [{key: team, operator: NotIn, values: [\"a\\tb\", c]}]}", "",
			[]string{`node affinity: no label team can have the value "a\tb"`}},
	} {
		p := Pod(affine(t, "requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: ["+c.terms+"]}"))
		var got []string
		for _, term := range p.NodeAffinity {
			got = append(got, requirements.NewSet(term...).String())
		}
		if text := strings.Join(got, " or "); text != c.want {
			t.Errorf("%s: requires %q, want %q", c.terms, text, c.want)
		}
		if diff := cmp.Diff(c.why, p.Unmodelled); diff != "" {
			t.Errorf("%s: unmodelled (-want +got):\n%s", c.terms, diff)
		}
	}
}
