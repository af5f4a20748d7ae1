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
	c, found := owner(n.Instance, claims)
	if !found {
		return Outcome{}
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

// owner is the claim that has the instance; of several, as after restoring a backup, the first by name that is not being
// deleted.
func owner(instance string, claims []cluster.Claim) (best cluster.Claim, found bool) {
	for _, c := range claims {
		if instance == "" || c.ProviderID[strings.LastIndexByte(c.ProviderID, '/')+1:] != instance {
			continue
		}
		if !found || deletingLast(c, best) < 0 {
			best, found = c, true
		}
	}
	return best, found
}

func deletingLast(a, b cluster.Claim) int {
	if a.Deleting.IsZero() != b.Deleting.IsZero() {
		if a.Deleting.IsZero() {
			return -1
		}
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}
