package ec2_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/model/instancetypes"
)

// Every code that means "not to be had", as an error about an offering and as the answer to the whole request, and what
// is marked for it.
func TestEveryCodeOfUnavailable(t *testing.T) {
	const a, b = "us-west-2a", "us-west-2b"
	for code, about := range map[string]string{
		"InsufficientInstanceCapacity": "offering", "MaxSpotInstanceCountExceeded": "offering", "VcpuLimitExceeded": "offering", "UnfulfillableCapacity": "offering",
		"Unsupported": "offering", "MaxFleetCountExceeded": "offering", "ReservationCapacityExceeded": "offering",
		"InvalidCapacityReservationState.Unavailable": "offering", "SpotMaxPriceTooLow": "offering",
		"InsufficientFreeAddressesInSubnet":                 "subnet",
		"AuthFailure.ServiceLinkedRoleCreationNotPermitted": "spot",
		"InternalError": "", "UnauthorizedOperation": "", "InvalidParameterValue": "",
	} {
		t.Run(code, func(t *testing.T) {
			r := start(t, 1)
			offerings := []instancetypes.UnavailableOffering{
				{OfferingKey: instancetypes.OfferingKey{CapacityType: "spot", Type: "m5.large", Zone: a}, Why: code},
				{OfferingKey: instancetypes.OfferingKey{CapacityType: "spot", Type: "m5.large", Zone: b}, Why: code},
			}
			role := instancetypes.UnavailableOffering{OfferingKey: instancetypes.OfferingKey{CapacityType: "spot"}, Why: code}
			answered := map[string][]instancetypes.UnavailableOffering{"offering": offerings, "spot": {role, role},
				"subnet": {{Scope: r.zones[a], Why: code}, {Scope: r.zones[b], Why: code}}}[about]
			refused := map[string][]instancetypes.UnavailableOffering{"offering": offerings, "subnet": offerings, "spot": {role}}[about]

			r.LimitCapacity(awsemulator.Capacity{Code: code})
			_, _, err := r.LaunchInstances(t.Context(), r.order("spot", "m5.large"), token)
			if d := cmp.Diff(answered, marked(err)); d != "" {
				t.Errorf("about an offering: %v (-want +got):\n%s", err, d)
			}
			r.ClearCapacity()
			r.AddFault(awsemulator.Fault{Service: "ec2", Action: "CreateFleet", Kind: awsemulator.FailBefore, Code: code, Times: 1})
			_, _, err = r.LaunchInstances(t.Context(), r.order("spot", "m5.large"), claimUID+"-1")
			if d := cmp.Diff(refused, marked(err)); d != "" || err == nil {
				t.Errorf("about the request: %v (-want +got):\n%s", err, d)
			}
		})
	}
}

func marked(err error) []instancetypes.UnavailableOffering {
	if no, ok := errors.AsType[*instancetypes.NoCapacityError](err); ok {
		return no.Unavailable
	}
	return nil
}
