package crdcheck

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	poolText = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: p}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
`
	classText = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: nodes
  subnetSelectorTerms: [{tags: {team: a}}]
  securityGroupSelectorTerms: [{id: sg-1}]
  amiSelectorTerms:
`
)

// Forms, rules over several fields, defaults before rules, and fields that are dropped.
func TestJudge(t *testing.T) {
	j, err := NewJudge()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text    string
		refused []string
		unknown []string
	}{
		"a pool":        {text: poolText + "      - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}\n"},
		"a class":       {text: classText + "  - {alias: al2023@latest}\n"},
		"a static pool": {text: poolText + "      - {key: a, operator: Exists}\n  replicas: 3\n  limits: {nodes: 4}\n"},
		"no value": {text: poolText + "      - {key: a, operator: In, values: []}\n",
			refused: []string{"spec.template.spec.requirements: Invalid value: requirements with operator 'In' must have a value defined"}},
		"every form of a value": {text: poolText + "      - {key: a, operator: NotIn, values: ['', 'a', 'A-b_c.d9', '007', \"" + strings.Repeat("x", 63) + "\"]}\n"},
		"no label value": {text: poolText + "      - {key: a, operator: In, values: [\"a b\\x1b[31m\", ok]}\n",
			refused: []string{`spec.template.spec.requirements[0].values[0]: Invalid value: "a b\x1b[31m": spec.template.spec.requirements[0].values[0] in body should match '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'`}},
		"no label value of a claim": {text: "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: c}\nspec:\n  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n  requirements:\n" +
			"  - {key: a, operator: In, values: [\"a b\\x1b[31m\"]}\n",
			refused: []string{`spec.requirements[0].values[0]: Invalid value: "a b\x1b[31m": spec.requirements[0].values[0] in body should match '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'`}},
		"a long value": {text: poolText + "      - {key: a, operator: In, values: [\"" + strings.Repeat("x", 64) + "\"]}\n",
			refused: []string{"spec.template.spec.requirements[0].values[0]: Too long: may not be more than 63 bytes"}},
		"a restricted key": {text: poolText + "      - {key: kubernetes.io/hostname, operator: Exists}\n",
			refused: []string{`spec.template.spec.requirements[0].key: Invalid value: "kubernetes.io/hostname": label "kubernetes.io/hostname" is restricted`}},
		"no class, an old policy": {text: "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: p}\nspec: {template: {spec: {requirements: []}}, disruption: {consolidateAfter: 0s, consolidationPolicy: WhenUnderutilized, expireAfter: 3h}}\n",
			refused: []string{
				`spec.disruption.consolidationPolicy: Unsupported value: "WhenUnderutilized": supported values: "WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"`,
				"spec.template.spec.nodeClassRef: Required value",
			},
			unknown: []string{"spec.disruption.expireAfter"}},
		"two ways to images": {text: classText + "  - {alias: al2023@latest}\n  - {id: ami-1}\n",
			refused: []string{"spec.amiSelectorTerms: Invalid value: 'alias' is mutually exclusive, cannot be set with a combination of other amiSelectorTerms"}},
		"a type that is wrong": {text: poolText + "      - {key: a, operator: Exists}\n  weight: heavy\n",
			refused: []string{`spec.weight: Invalid value: "string": spec.weight in body must be of type integer: "string"`}},
	} {
		body, err := yaml.YAMLToJSON([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(body, &head); err != nil {
			t.Fatal(err)
		}
		v, known, err := j.Judge(head.APIVersion, head.Kind, body)
		if err != nil || !known {
			t.Errorf("%s: known %t, %v", name, known, err)
		}
		var refused []string
		for _, e := range v.Refused {
			refused = append(refused, e.Error())
		}
		slices.Sort(refused)
		if diff := cmp.Diff([][]string{c.refused, c.unknown}, [][]string{refused, v.Unknown}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, known, err := j.Judge("v1", "Pod", []byte("{}")); known || err != nil {
		t.Errorf("a Pod: known %t, %v", known, err)
	}
}
