//go:build !karpenter_1_14

package karpenter

import (
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/state/cost"
)

// newController makes the disruption controller in the form of Karpenter 1.15, which reads gates from the context.
func (d *Disruption) newController(c *cost.ClusterCost) *disruption.Controller {
	return disruption.NewController(d.ctx, d.clock, d.store, d.prov, d.provider, d.recorder, d.cluster, d.queue, c)
}

func (j *Judge) newMethods() []disruption.Method {
	return disruption.NewMethods(j.ctx, j.clock, j.cluster, j.store, j.prov, j.provider, &j.said, j.queue)
}
