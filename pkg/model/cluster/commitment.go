package cluster

import (
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
)

// AllotCommitments gives the account's commitments to the instances of the cluster, those that are on their way
// included, after those elsewhere. It returns which part of the price of each is paid for, by the name of its
// NodeClaim, and what room each commitment has left, by its id. Nodes that are being deleted do not count: what
// replaces them may have their share.
func (s Snapshot) AllotCommitments() (paid map[string]float64, left map[string]int64) {
	if len(s.Catalog.Commitments) == 0 {
		return nil, nil
	}
	var uses []instancetypes.InstanceUse
	for _, node := range s.StateNodes() {
		if node.Claim == nil || node.Deleting() || node.Claim.Is(api.ConditionStopped) {
			continue
		}
		known := node.KnownLabels()
		one := func(label string) string {
			r, _ := known.Get(label)
			v, _ := r.Single()
			return v
		}
		switch one(instancetypes.LabelCapacityType) {
		case instancetypes.OnDemand:
		case instancetypes.Reserved:
			if one(instancetypes.LabelReservation) == instancetypes.CapacityBlock {
				continue // paid for in advance, by itself
			}
		default:
			continue
		}
		if typ := one(instancetypes.LabelType); typ != "" &&
			one(instancetypes.LabelTenancy) != instancetypes.TenancyDedicated {
			uses = append(uses, instancetypes.InstanceUse{Name: node.Claim.Name, Type: typ,
				Zone: one(instancetypes.LabelZone), Since: node.Claim.Created})
		}
	}
	return s.Catalog.AllotCommitments(uses)
}
