package plancheck

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"joiner.sh/pkg/model/instancetypes"
)

// paidFor gives the launch the price that its commitment leaves. It must be able to become nothing else than the type
// on demand.
func (t *planCheck) paidFor(m *possibleNode) {
	choice := m.launch.Choice
	zonal := slices.ContainsFunc(t.Snapshot.Catalog.Commitments, func(k instancetypes.Commitment) bool {
		return k.ID == choice.Paid[0].Commitment && k.Zone != ""
	})
	for i := range m.shapes {
		s := &m.shapes[i]
		if s.offering.CapacityType != choice.CapacityType || s.offering.Type != choice.Type {
			t.addViolation("%s: it is to be covered as %s, it may become %s", m.name, choice.OfferingKey, s)
		}
		if zonal && s.offering.Zone != choice.Zone {
			t.addViolation("%s: what covers it counts in zone %s only, it may become %s", m.name, choice.Zone, s)
		}
		if choice.Price > s.offering.Price {
			t.addViolation("%s: it costs %g with what covers it, and %g without", m.name, choice.Price, s.offering.Price)
		}
		s.price, s.offering.Price = choice.Price, choice.Price
	}
}

// checkCommitments wants no commitment to cover more launches than it has room for beside what runs.
func (t *planCheck) checkCommitments() {
	_, left := t.Snapshot.AllotCommitments()
	for _, l := range t.plan.Launches {
		if len(l.Choice.Paid) > 1 {
			t.addViolation("a launch is covered by %d commitments", len(l.Choice.Paid))
		}
		for _, d := range l.Choice.Paid {
			left[d.Commitment] -= d.Amount
			t.checkDraws(d, l.Choice)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		if left[id] < 0 {
			t.addViolation("commitment %s covers %d more than it has room for", id, -left[id])
		}
	}
}

// checkDraws wants a launch to draw on a commitment what an instance of its type and zone takes of it.
func (t *planCheck) checkDraws(d instancetypes.CommitmentDraw, o instancetypes.Offering) {
	i := slices.IndexFunc(t.Snapshot.Catalog.Commitments,
		func(k instancetypes.Commitment) bool { return k.ID == d.Commitment })
	if i < 0 {
		t.addViolation("a launch is covered by commitment %s, which does not exist", d.Commitment)
		return
	}
	if want := takenAmount(t.Snapshot.Catalog.Commitments[i], o.Type, o.Zone); d.Amount != want || want == 0 {
		t.addViolation("a %s in %s draws %d of commitment %s, it takes %d", o.Type, o.Zone, d.Amount, d.Commitment,
			want)
	}
}

// takenAmount returns what an instance takes of a commitment by EC2's rules, 0 for one that it is not for.
func takenAmount(k instancetypes.Commitment, typ, zone string) int64 {
	family, size, _ := strings.Cut(typ, ".")
	switch {
	case len(k.Rates) > 0:
		return int64(math.Round(k.Rates[typ] * 1e6))
	case k.Zone != "" && k.Zone != zone, !k.Flexible && k.Type != typ, !strings.HasPrefix(k.Type, family+"."):
		return 0
	case !k.Flexible:
		return 1
	}
	if n, ok := map[string]int64{"nano": 1, "micro": 2, "small": 4, "medium": 8, "large": 16, "xlarge": 32}[size]; ok {
		return n
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(size, "xlarge"), 10, 64)
	if err != nil {
		return 0
	}
	return 32 * n
}
