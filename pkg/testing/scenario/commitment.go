package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"joiner.sh/pkg/model/instancetypes"
)

// addCommitment reads "commitment ri type=m5.large zone=a flexible room=16" or "commitment sp room=96000" with lines
// "rate m5.large 60000", amounts in the measure of instancetypes.Commitment, rates in millionths of a USD per hour, and
// "elsewhere m5.large zone=a n=2".
func (w *World) addCommitment(d directive) error {
	c := &w.Snapshot.Catalog
	if d.cmd == "elsewhere" {
		c.Elsewhere = append(c.Elsewhere, instancetypes.RunningCount{Type: d.name(), Zone: d.str("zone"),
			Count: d.num("n", 1)})
		return nil
	}
	k := instancetypes.Commitment{ID: d.name(), Type: d.str("type"), Zone: d.str("zone"), Flexible: d.has("flexible"),
		Room: d.num("room", 0)}
	for _, l := range d.lines {
		f := strings.Fields(l)
		if len(f) != 3 || f[0] != "rate" {
			return fmt.Errorf("commitment %s: line %q: want rate TYPE MILLIONTHS", k.ID, l)
		}
		n, err := strconv.ParseFloat(f[2], 64)
		if err != nil {
			return fmt.Errorf("commitment %s: line %q: %w", k.ID, l, err)
		}
		if k.Rates == nil {
			k.Rates = map[string]float64{}
		}
		k.Rates[f[1]] = n / 1e6
	}
	c.Commitments = append(c.Commitments, k)
	return nil
}
