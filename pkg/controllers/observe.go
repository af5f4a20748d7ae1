package controllers

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
)

// observer reads what a decision about capacity may see: the cluster, what EC2 sells, what it refused to sell, and what
// is left.
type observer struct {
	read    Reader
	prices  CatalogReader
	soldOut UnavailableOfferings
	levels  RemainingCapacity // nil where nothing is known about what is left
	rules   cluster.Settings
	now     func() time.Time
	log     *slog.Logger
}

// withVolumes is the snapshot with what volumes allow, where that matters to a decision that may empty these nodes,
// named.
func withVolumes(ctx context.Context, read Reader, s cluster.Snapshot, emptied map[string]bool) (cluster.Snapshot,
	error) {
	if !s.VolumesMatter(emptied) {
		return s, nil
	}
	return read.WithVolumes(ctx, s)
}

func (m observer) readSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	s, err := m.read.ReadSnapshot(ctx)
	if err != nil {
		return s, err
	}
	var why string
	if s.Catalog, why, err = m.prices.ReadCatalog(ctx); err != nil {
		return s, err
	}
	if why != "" {
		m.log.Warn("catalog: " + why)
	}
	if s.SoldOut, err = m.soldOut.ListUnavailable(ctx); err != nil {
		return s, err
	}
	for i := range s.Classes {
		s.Classes[i].MemoryOverhead, s.Classes[i].ReservedENIs = m.rules.MemoryOverhead, m.rules.ReservedENIs
	}
	if m.levels != nil {
		s.Classes = m.readClassLevels(ctx, s.Classes)
	}
	s.Now, s.Rules = m.now(), m.rules
	return s, nil
}

// readClassLevels are the classes with what is left of their capacity reservations and subnets. Reservations that
// cannot be read count as used up, and subnets as having room: the pods find something else, EC2 says what is not so,
// and the next pass asks again.
func (m observer) readClassLevels(ctx context.Context, classes []instancetypes.Class) []instancetypes.Class {
	reservations, subnets := map[string]bool{}, map[string]bool{}
	for _, c := range classes {
		for _, r := range c.Reservations {
			reservations[r.ID] = true
		}
		for _, s := range c.Subnets {
			subnets[s.ID] = true
		}
	}
	room := m.readLevel(ctx, "no capacity reservation is used in this pass", m.levels.RemainingReservations,
		reservations)
	free := m.readLevel(ctx, "the addresses of subnets are not counted in this pass", m.levels.RemainingAddresses,
		subnets)
	out := slices.Clone(classes)
	for i := range out {
		m.fillPlacementGroup(ctx, &out[i])
		out[i].Reservations, out[i].Subnets = slices.Clone(out[i].Reservations), slices.Clone(out[i].Subnets)
		for j := range out[i].Reservations {
			out[i].Reservations[j].Remaining = room[out[i].Reservations[j].ID]
		}
		for j := range out[i].Subnets {
			if n, known := free[out[i].Subnets[j].ID]; known {
				out[i].Subnets[j].Free = &n
			}
		}
	}
	return out
}

func (m observer) readLevel(ctx context.Context, without string,
	read func(context.Context, []string) (map[string]int64, error), ids map[string]bool) map[string]int64 {
	if len(ids) == 0 {
		return nil
	}
	out, err := read(ctx, slices.Sorted(maps.Keys(ids)))
	if err != nil {
		m.log.Warn(without, "error", err)
	}
	return out
}

// fillPlacementGroup fills in the placement group of the class. Without it nothing can be launched for the class.
func (m observer) fillPlacementGroup(ctx context.Context, c *instancetypes.Class) {
	if c.Placement == nil {
		return
	}
	group, err := m.levels.FindGroup(ctx, *c.Placement)
	switch {
	case err != nil:
		m.log.Warn("class "+c.Name+" launches nothing in this pass", "error", err)
		c.Ready, c.Message = false, err.Error()
	case group == nil:
		c.Ready, c.Message = false, "PlacementGroupNotFound: there is no placement group "+c.Placement.Selected()
	default:
		c.Placement = group
	}
}
