package controllers

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/scheduling/binpack"
)

// Observer reads what a decision about capacity may see: the cluster, what EC2 sells, what it refused to sell, and what
// is left.
type Observer struct {
	Read        Reader
	Prices      CatalogReader
	Unavailable UnavailableOfferings
	Levels      RemainingCapacity // nil where nothing is known about what is left
	// of NodeRollouts; nil where there are none
	Rollouts Rollouts
	Rules    cluster.Settings
	Now      func() time.Time
	Log      *slog.Logger
}

// WithVolumes is the snapshot with what volumes allow, where that matters to a decision that may empty the nodes that
// emptied names.
func WithVolumes(ctx context.Context, read Reader, s cluster.Snapshot,
	emptied func(cluster.Snapshot) map[string]bool) (cluster.Snapshot, error) {
	if !s.HasUnreadVolumes() || !s.VolumesMatter(emptied(s)) {
		return s, nil
	}
	NoteStage(ctx, StageVolumes)
	return read.WithVolumes(ctx, s)
}

// ReadSnapshot reads all of it, without volumes. The catalog comes first: meanwhile the cluster's watches get on, and
// notices come in that the same decision is to see. What is unavailable comes after the cluster: a notice marks the
// offering first and deletes the NodeClaim then, so that no replacement is of the same offering.
func (o Observer) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	NoteStage(ctx, StageCatalog)
	catalog, why, err := o.Prices.ReadCatalog(ctx)
	if err != nil {
		return cluster.Snapshot{}, err
	}
	if why != "" {
		o.Log.Warn("catalog: " + why)
	}
	NoteStage(ctx, StageReading)
	s, err := o.Read.ReadSnapshot(ctx)
	if err != nil {
		return s, err
	}
	s.Catalog = catalog
	if s.Unavailable, err = o.Unavailable.ListUnavailable(ctx); err != nil {
		return s, err
	}
	if o.Rollouts != nil {
		NoteStage(ctx, StageRollouts)
		if s, err = o.Rollouts.AddRollouts(ctx, s); err != nil {
			return s, err
		}
	}
	for i := range s.Classes {
		s.Classes[i].ApplySettings(o.Rules.MemoryOverhead, o.Rules.ReservedENIs, o.Rules.OpenReservations,
			o.Rules.IPv6)
	}
	if o.Levels != nil {
		NoteStage(ctx, StageLevels)
		s.Classes = o.readClassLevels(ctx, s.Classes)
	}
	s.Now, s.Rules = o.Now(), o.Rules
	unused, _ := binpack.UnusedNodes(s)
	s.Unused = append(s.Unused, lists.Of(unused, func(u instancetypes.UnusedNode) string { return u.Node })...)
	return s, nil
}

// readClassLevels are the classes with what is left of their capacity reservations and subnets. Reservations that
// cannot be read count as used up, and subnets as having room: the pods find something else, EC2 says what is not so,
// and the next pass asks again.
func (o Observer) readClassLevels(ctx context.Context, classes []instancetypes.Class) []instancetypes.Class {
	reservations, subnets := map[string]bool{}, map[string]bool{}
	for _, c := range classes {
		for _, r := range c.Reservations {
			reservations[r.ID] = true
		}
		for _, s := range c.Subnets {
			subnets[s.ID] = true
		}
	}
	room := o.readLevel(ctx, "no capacity reservation is used in this pass", o.Levels.RemainingReservations,
		reservations)
	free := o.readLevel(ctx, "the addresses of subnets are not counted in this pass", o.Levels.RemainingAddresses,
		subnets)
	out := slices.Clone(classes)
	for i := range out {
		o.fillPlacementGroup(ctx, &out[i])
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

func (o Observer) readLevel(ctx context.Context, without string,
	read func(context.Context, []string) (map[string]int64, error), ids map[string]bool) map[string]int64 {
	if len(ids) == 0 {
		return nil
	}
	out, err := read(ctx, slices.Sorted(maps.Keys(ids)))
	if err != nil {
		o.Log.Warn(without, "error", err)
	}
	return out
}

// fillPlacementGroup fills in the placement group of the class. Without it nothing can be launched for the class.
func (o Observer) fillPlacementGroup(ctx context.Context, c *instancetypes.Class) {
	if c.Placement == nil {
		return
	}
	group, err := o.Levels.FindGroup(ctx, *c.Placement)
	switch {
	case err != nil:
		o.Log.Warn("class "+c.Name+" launches nothing in this pass", "error", err)
		c.Ready, c.Message = false, err.Error()
	case group == nil:
		c.Ready, c.Message = false, "PlacementGroupNotFound: there is no placement group "+c.Placement.Selected()
	default:
		c.Placement = group
	}
}
