package cluster

import (
	"slices"
	"testing"

	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

func TestUntriedPodsAreExpectedToFindNoNode(t *testing.T) {
	refused := Pod{Namespace: "shop", Controller: "web", Phase: "Pending", Unscheduled: true,
		Need: resources.List{CPU: 500, Pods: 1, Extended: []resources.Extended{{Name: "nvidia.com/gpu", Count: 1}}}}
	untried := refused
	untried.Unscheduled, untried.Untried = false, true
	untried.Need.Extended = slices.Clone(refused.Need.Extended)
	for _, c := range []struct {
		name          string
		change        func(refused, untried *Pod)
		provisionable bool
	}{
		{"of one controller", func(_, _ *Pod) {}, true},
		{"of another", func(_, p *Pod) { p.Controller = "api" }, false},
		{"of none", func(r, p *Pod) { r.Controller, p.Controller = "", "" }, true},
		{"of none, with other labels", func(r, p *Pod) {
			r.Controller, p.Controller, p.Labels = "", "", map[string]string{"app": "web"}
		}, false},
		{"of none, with a volume", func(r, p *Pod) {
			r.Controller, p.Controller, p.UnreadClaims = "", "", []string{"data"}
		}, false},
		{"of one controller, with its own label", func(_, p *Pod) { p.Labels = map[string]string{"index": "1"} }, true},
		{"the other is room of a buffer", func(r, _ *Pod) { r.Virtual = true }, false},
		{"in another namespace", func(_, p *Pod) { p.Namespace = "infra" }, false},
		{"has conditions, such as a scheduling gate", func(_, p *Pod) { p.Untried = false }, false},
		{"has a node", func(_, p *Pod) { p.NodeName = "n" }, false},
		{"is deleted", func(_, p *Pod) { p.Deleting = noon }, false},
		{"needs less", func(_, p *Pod) { p.Need.CPU = 100 }, false},
		{"selects nodes", func(_, p *Pod) { p.NodeSelector = map[string]string{"team": "a"} }, false},
		{"may be elsewhere", func(_, p *Pod) { p.NodeAffinity = terms(requirements.Any("x")) }, false},
		{"is more urgent", func(_, p *Pod) { p.Priority = 1 }, false},
		{"the other preempts", func(r, _ *Pod) { r.Nominated = "n" }, false},
		{"the other has ended", func(r, _ *Pod) { r.Phase = "Failed" }, false},
		{"the other is of a DaemonSet", func(r, _ *Pod) { r.Owner = OwnerDaemonSet }, false},
	} {
		pods := []Pod{untried, refused}
		c.change(&pods[1], &pods[0])
		ExpectUnscheduled(pods)
		if got := pods[0].Provisionable(); got != c.provisionable {
			t.Errorf("%s: provisionable %t", c.name, got)
		}
	}
}
