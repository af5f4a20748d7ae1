package v1

import (
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	smallestPool = `
spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}}
`
	fullPool = `
spec:
  template:
    metadata: {labels: {billing-team: my-team, a: b}, annotations: {x.y/z: "1"}}
    spec:
      requirements: [{key: a, operator: In, values: [b]}]
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      expireAfter: 720h
      terminationGracePeriod: 24h
      taints: [{key: a, value: b, effect: NoSchedule}, {key: c, effect: NoExecute}]
      startupTaints: [{key: d, value: b, effect: NoSchedule, timeAdded: "2026-01-02T03:04:05Z"}]
`
)

func poolOf(t *testing.T, text string) *NodePool {
	t.Helper()
	p := &NodePool{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// The numbers are those that Karpenter 1.14.1 gives the same pools. If one changes, every node of every cluster drifts.
func TestHashIsKarpenters(t *testing.T) {
	if got := poolOf(t, smallestPool).Hash(); got != "17369979337536258260" {
		t.Errorf("smallest pool: %s", got)
	}
	if got := poolOf(t, fullPool).Hash(); got != "5434271043549096697" {
		t.Errorf("full pool: %s", got)
	}
	never := poolOf(t, fullPool)
	never.Spec.Template.Spec.ExpireAfter = NeverAfter()
	grace := NewDuration(5400e9)
	never.Spec.Template.Spec.TerminationGracePeriod = &grace
	if got := never.Hash(); got != "5220111421759986003" {
		t.Errorf("full pool that never expires, with 1h30m of grace: %s", got)
	}
}

func TestWhatMakesNodesDrift(t *testing.T) {
	weight := int32(5)
	changes := []struct {
		name   string
		drifts bool
		change func(*NodePool)
	}{
		{"label", true, func(p *NodePool) { p.Spec.Template.Labels["a"] = "c" }},
		{"annotation", true, func(p *NodePool) { p.Spec.Template.Annotations["new"] = "c" }},
		{"taint", true, func(p *NodePool) { p.Spec.Template.Spec.Taints[0].Value = "c" }},
		{"startup taint", true, func(p *NodePool) { p.Spec.Template.Spec.StartupTaints = nil }},
		{"node class", true, func(p *NodePool) { p.Spec.Template.Spec.NodeClassRef.Name = "other" }},
		{"expireAfter", true, func(p *NodePool) { p.Spec.Template.Spec.ExpireAfter = After(1) }},
		{"terminationGracePeriod", true, func(p *NodePool) { p.Spec.Template.Spec.TerminationGracePeriod = nil }},
		{"order of taints", false, func(p *NodePool) {
			taints := p.Spec.Template.Spec.Taints
			taints[0], taints[1] = taints[1], taints[0]
		}},
		{"text of a duration", false, func(p *NodePool) { p.Spec.Template.Spec.ExpireAfter = After(720 * 3600e9) }},
		{"requirements", false, func(p *NodePool) { p.Spec.Template.Spec.Requirements = nil }},
		{"weight", false, func(p *NodePool) { p.Spec.Weight = &weight }},
		{"disruption", false, func(p *NodePool) { p.Spec.Disruption.ConsolidateAfter = NeverAfter() }},
		{"limits", false, func(p *NodePool) { p.Spec.Limits = Limits{LimitNodes: {}} }},
	}
	for _, c := range changes {
		changed := poolOf(t, fullPool)
		c.change(changed)
		if drifts := changed.Hash() != "5434271043549096697"; drifts != c.drifts {
			t.Errorf("%s changes the hash: %t, want %t", c.name, drifts, c.drifts)
		}
	}
}
