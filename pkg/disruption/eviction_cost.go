package disruption

import (
	corev1 "k8s.io/api/core/v1"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
)

// priceOf is what the host costs, as its labels say what it is, whether or not more of it can be had. 0 is unknown.
func (st *State) priceOf(h cluster.StateNode, p cluster.Pool) (instancetypes.Offer, float64) {
	l := h.Labels()
	o := instancetypes.Offer{CapacityType: l[v1.LabelCapacityType], Type: l[corev1.LabelInstanceTypeStable], Zone: l[corev1.LabelTopologyZone]}
	t, ok := st.typeIn(p, o.Type)
	if !ok {
		return o, 0
	}
	for _, x := range t.Offerings {
		if x.Offer == o && len(x.Paid) == 0 && (x.Reservation == nil || x.Reservation.ID == l[instancetypes.LabelReservationID]) {
			if part := st.paid[h.Claim.Name]; part > 0 && x.Reservation == nil {
				return o, instancetypes.PaidPrice(x.Price, part)
			}
			return o, x.Price
		}
	}
	return o, 0
}
