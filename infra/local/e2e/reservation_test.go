package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/testing/shortrun"
)

// reserving is a class that selects the capacity reservations of a team, with a pool that may use them, and on-demand
// beside them.
func reserving() []fmt.Stringer {
	reserved := pool("default", `{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}`)
	reserved = strings.Replace(reserved, "values: [spot, on-demand]", "values: [reserved, on-demand]", 1)
	c := strings.Replace(class{name: "default"}.String(), "spec:", "spec:\n  capacityReservationSelectorTerms: [{tags: {team: a}}]", 1)
	return []fmt.Stringer{text(reserved), text(c)}
}

// Three nodes are needed and two are reserved, in two reservations of one type in one zone. The answer about each
// launch is lost, and nothing is launched twice for that. Then one reservation is cancelled and the class does not
// select the other any more.
func TestReservedCapacityIsUsedUpFirst(t *testing.T) {
	shortrun.Skip(t)
	w := start(t)
	for id, team := range map[string]string{"cr-0aaa": "a", "cr-0bbb": "a", "cr-0ccc": "b"} {
		w.Cloud.ReserveCapacity(awsemulator.Reservation{ID: id, Type: "m5.large", Zone: "us-west-2a", Count: 1, Open: true, Tags: map[string]string{"team": team}})
	}
	w.apply(reserving()...)
	w.tick("refresh")
	w.fault(awsemulator.Fault{Action: "CreateFleet", Kind: awsemulator.LoseReply, Times: 3})
	w.run(deployment{name: "web", replicas: 3, alone: true})
	w.started(3)
	if got, want := w.booked(), []string{"", "cr-0aaa", "cr-0bbb"}; !slices.Equal(got, want) {
		t.Errorf("instances are in the reservations %q, want %q: the third team's is not ours although it is open", got, want)
	}
	if got, want := w.sold(), []string{"on-demand ", "reserved cr-0aaa", "reserved cr-0bbb"}; !slices.Equal(got, want) {
		t.Errorf("nodes say %q, want %q", got, want)
	}

	w.Cloud.CancelReservation("cr-0aaa")
	w.until("the node of the cancelled reservation is on-demand", func() (string, bool) {
		return fmt.Sprint(w.sold()), slices.Equal(w.sold(), []string{"on-demand ", "on-demand ", "reserved cr-0bbb"})
	}, "lifecycle")
	if n := w.up("web"); n != 3 {
		t.Errorf("%d pods are up, want 3: nothing was taken away", n)
	}
	w.started(3)
}

// booked are the reservations that instances are in, sorted.
func (w *world) booked() []string {
	var out []string
	for _, i := range w.living() {
		out = append(out, i.Reservation)
	}
	slices.Sort(out)
	return out
}

// sold is what nodes and claims, which agree, say about how they were bought, sorted.
func (w *world) sold() []string {
	w.t.Helper()
	var nodes, claims []string
	say := func(labels map[string]string) string {
		return labels["karpenter.sh/capacity-type"] + " " + labels["karpenter.k8s.aws/capacity-reservation-id"]
	}
	for _, n := range w.nodes() {
		nodes = append(nodes, say(n.Labels))
	}
	for _, c := range w.claims() {
		claims = append(claims, say(c.GetLabels()))
	}
	slices.Sort(nodes)
	slices.Sort(claims)
	if !slices.Equal(nodes, claims) {
		return append(nodes, "but claims say "+strings.Join(claims, ", "))
	}
	return nodes
}
