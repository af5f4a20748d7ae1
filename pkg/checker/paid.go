package checker

import (
	"maps"
	"slices"
)

// paidFor gives the launch the price that its commitment leaves. It must be able to become nothing else than the type on demand.
func (t *trial) paidFor(m *machine) {
	choice := m.launch.Choice
	for i := range m.shapes {
		s := &m.shapes[i]
		if s.offer.CapacityType != choice.CapacityType || s.offer.Type != choice.Type {
			t.bad("%s: it is to be covered as %s, it may become %s", m.name, choice.Offer, s)
		}
		s.price, s.offer.Price = choice.Price, choice.Price
	}
}

// commitments wants no commitment to cover more launches than it has room for beside what runs.
func (t *trial) commitments() {
	_, left := t.Snapshot.Allot()
	for _, l := range t.plan.Launches {
		if len(l.Choice.Paid) > 1 {
			t.bad("a launch is covered by %d commitments", len(l.Choice.Paid))
		}
		for _, d := range l.Choice.Paid {
			left[d.Commitment] -= d.Amount
		}
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		if left[id] < 0 {
			t.bad("commitment %s covers %d more than it has room for", id, -left[id])
		}
	}
}
