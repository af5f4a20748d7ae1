package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/resources"
)

// addOverlay reads "overlay cheap weight=10 price=0.05 invalid=why" or "change=-10%" or "change=+0.1", with lines
// "require KEY OP VALUES" and "capacity NAME COUNT".
func (w *World) addOverlay(d directive) error {
	o := cluster.Overlay{Name: d.name(), Weight: int32(d.num("weight", 0)), Message: d.str("invalid")}
	if d.has("price") {
		usd, err := strconv.ParseFloat(d.str("price"), 64)
		if err != nil {
			return fmt.Errorf("overlay %s: %w", o.Name, err)
		}
		o.Price = &usd
	}
	if d.has("change") {
		text, percent := strings.CutSuffix(d.str("change"), "%")
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("overlay %s: %w", o.Name, err)
		}
		o.Change = &cluster.PriceChange{USD: n}
		if percent {
			o.Change = &cluster.PriceChange{Percent: n}
		}
	}
	for _, l := range d.lines {
		word, rest, _ := strings.Cut(l, " ")
		name, count, _ := strings.Cut(rest, " ")
		switch word {
		case "require":
			r, err := requirement(rest)
			if err != nil {
				return err
			}
			o.Requirements = o.Requirements.And(r)
		case "capacity":
			n, err := strconv.ParseInt(count, 10, 64)
			if err != nil {
				return fmt.Errorf("overlay %s: line %q: %w", o.Name, l, err)
			}
			o.Capacity = append(o.Capacity, resources.Extended{Name: name, Count: n})
		default:
			return fmt.Errorf("overlay %s: %w", o.Name, unknownLine(l, "require", "capacity"))
		}
	}
	w.Snapshot.Overlays = append(w.Snapshot.Overlays, o)
	return nil
}

// sold returns what the pool sells under the world's overlays. This is what nodes of the world really turn out to be.
func (w *World) sold(pool string) []instancetypes.Type {
	p, _ := w.Snapshot.PoolOf(pool)
	return overlays.ByPool(w.Snapshot, w.Market)(p)
}

func (w *World) typeIn(pool, name string) (instancetypes.Type, bool) {
	for _, t := range w.sold(pool) {
		if t.Name == name {
			return t, true
		}
	}
	return instancetypes.Type{}, false
}
