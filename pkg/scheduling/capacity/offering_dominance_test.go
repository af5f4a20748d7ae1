package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An offering that a cheaper one with at least its room beats is not looked at; one with more room of anything stays.
func TestBeatenOfferingsAreLeftOut(t *testing.T) {
	var all []admittedOffering
	for _, room := range [][]int64{{4, 8}, {4, 8}, {2, 16}, {2, 4}, {8, 8}, {4, 16}} { // cheapest first
		all = append(all, admittedOffering{offering: &Offering{Room: room}})
	}
	var got [][]int64
	for _, e := range filterUnbeaten(all, nil) {
		got = append(got, e.offering.Room)
	}
	if diff := cmp.Diff([][]int64{{4, 8}, {2, 16}, {8, 8}, {4, 16}}, got); diff != "" {
		t.Error(diff)
	}
}
