package fleettest_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner/infra/local/cloud"
	"joiner/pkg/catalog"
)

// Every code that means "not to be had" (spec aws.md §3.7), as an error about an offer and as the answer to the whole request, and what is
// marked for it.
func TestEveryCodeOfSoldOut(t *testing.T) {
	const a, b = "us-west-2a", "us-west-2b"
	for code, about := range map[string]string{
		"InsufficientInstanceCapacity": "offer", "MaxSpotInstanceCountExceeded": "offer", "VcpuLimitExceeded": "offer", "UnfulfillableCapacity": "offer",
		"Unsupported": "offer", "MaxFleetCountExceeded": "offer", "ReservationCapacityExceeded": "offer",
		"InvalidCapacityReservationState.Unavailable": "offer", "SpotMaxPriceTooLow": "offer",
		"InsufficientFreeAddressesInSubnet":                 "subnet",
		"AuthFailure.ServiceLinkedRoleCreationNotPermitted": "spot",
		"InternalError": "", "UnauthorizedOperation": "", "InvalidParameterValue": "",
	} {
		t.Run(code, func(t *testing.T) {
			r := start(t, 1)
			offers := []catalog.Mark{
				{Offer: catalog.Offer{CapacityType: "spot", Type: "m5.large", Zone: a}, Why: code},
				{Offer: catalog.Offer{CapacityType: "spot", Type: "m5.large", Zone: b}, Why: code},
			}
			role := catalog.Mark{Offer: catalog.Offer{CapacityType: "spot"}, Why: code}
			answered := map[string][]catalog.Mark{"offer": offers, "spot": {role, role},
				"subnet": {{Scope: r.zones[a], Why: code}, {Scope: r.zones[b], Why: code}}}[about]
			refused := map[string][]catalog.Mark{"offer": offers, "subnet": offers, "spot": {role}}[about]

			r.LimitCapacity(cloud.Capacity{Code: code})
			_, _, err := r.Launch(t.Context(), r.order("spot", "m5.large"), token)
			if d := cmp.Diff(answered, marked(err)); d != "" {
				t.Errorf("about an offer: %v (-want +got):\n%s", err, d)
			}
			r.ClearCapacity()
			r.AddFault(cloud.Fault{Service: "ec2", Action: "CreateFleet", Kind: cloud.FailBefore, Code: code, Times: 1})
			_, _, err = r.Launch(t.Context(), r.order("spot", "m5.large"), claimUID+"-1")
			if d := cmp.Diff(refused, marked(err)); d != "" || err == nil {
				t.Errorf("about the request: %v (-want +got):\n%s", err, d)
			}
		})
	}
}

func marked(err error) []catalog.Mark {
	if no, ok := errors.AsType[*catalog.NoCapacityError](err); ok {
		return no.Marks
	}
	return nil
}
