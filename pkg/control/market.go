package control

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
)

// market reads what a decision about capacity may see: the cluster, what EC2 sells, what it refused to sell, and what is left.
type market struct {
	read    Reader
	prices  Prices
	soldOut SoldOut
	levels  Levels // nil where nothing is known about what is left
	rules   cluster.Rules
	now     func() time.Time
	log     *slog.Logger
}

func (m market) snapshot(ctx context.Context) (cluster.Snapshot, error) {
	s, err := m.read.Snapshot(ctx)
	if err != nil {
		return s, err
	}
	var why string
	if s.Catalog, why, err = m.prices.Catalog(ctx); err != nil {
		return s, err
	}
	if why != "" {
		m.log.Warn("catalog: " + why)
	}
	if s.SoldOut, err = m.soldOut.Marks(ctx); err != nil {
		return s, err
	}
	for i := range s.Classes {
		s.Classes[i].MemoryOverhead, s.Classes[i].ReservedENIs = m.rules.MemoryOverhead, m.rules.ReservedENIs
	}
	if m.levels != nil {
		s.Classes = m.stocked(ctx, s.Classes)
	}
	s.Now, s.Rules = m.now(), m.rules
	return s, nil
}

// stocked are the classes with what is left of their capacity reservations. What cannot be read counts as used up: the pods find
// something else, and the next pass asks again.
func (m market) stocked(ctx context.Context, classes []catalog.Class) []catalog.Class {
	ids := map[string]bool{}
	for _, c := range classes {
		for _, r := range c.Reservations {
			ids[r.ID] = true
		}
	}
	if len(ids) == 0 {
		return classes
	}
	room, err := m.levels.Reservations(ctx, slices.Sorted(maps.Keys(ids)))
	if err != nil {
		m.log.Warn("no capacity reservation is used in this pass", "error", err)
	}
	out := slices.Clone(classes)
	for i := range out {
		out[i].Reservations = slices.Clone(out[i].Reservations)
		for j := range out[i].Reservations {
			out[i].Reservations[j].Remaining = room[out[i].Reservations[j].ID]
		}
	}
	return out
}
