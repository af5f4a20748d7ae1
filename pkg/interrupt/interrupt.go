// Package interrupt decides what a notice about an instance means for the cluster.
//
// It knows which claim an instance belongs to and what is marked and condemned (spec aws.md §6.2). It refuses to know how a
// notice arrives.
package interrupt

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
)

// Notice is one warning about one instance.
type Notice struct {
	Instance string // instance id
	Reason   string // the reason of the Kubernetes event, such as SpotInterrupted
}

// Outcome is what a notice asks for. The zero value asks for nothing: the instance is not ours.
type Outcome struct {
	Claim   cluster.Claim
	Found   bool
	Condemn bool           // false when the claim is being deleted already
	SoldOut []catalog.Mark // offers not to be bought for a while, without Until
}

// Spot decides about a spot interruption warning: the offer is sold out and the claim is condemned.
func Spot(n Notice, claims []cluster.Claim) Outcome {
	for _, c := range claims {
		if !owns(c, n.Instance) {
			continue
		}
		o := Outcome{Claim: c, Found: true, Condemn: c.Deleting.IsZero()}
		offer := catalog.Offer{
			CapacityType: catalog.Spot,
			Type:         c.Labels[corev1.LabelInstanceTypeStable],
			Zone:         c.Labels[corev1.LabelTopologyZone],
		}
		if offer.Type != "" && offer.Zone != "" && c.Labels[v1.LabelCapacityType] == catalog.Spot {
			o.SoldOut = []catalog.Mark{{Offer: offer, Why: n.Reason}}
		}
		return o
	}
	return Outcome{}
}

func owns(c cluster.Claim, instance string) bool {
	return instance != "" && c.ProviderID[strings.LastIndexByte(c.ProviderID, '/')+1:] == instance
}
