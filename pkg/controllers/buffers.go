package controllers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	v1beta1 "joiner/pkg/api/autoscaling/v1beta1"
	"joiner/pkg/model/buffers"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/plan"
)

// Buffers reads and writes CapacityBuffers. A write is refused with a Conflict when the object changed since it was
// read.
type Buffers interface {
	// ListBuffers lists the buffers of our strategy with what they refer to.
	ListBuffers(ctx context.Context) ([]buffers.Buffer, error)
	// WriteBufferStatus stores the status; the buffer given is then as stored.
	WriteBufferStatus(ctx context.Context, b *v1beta1.CapacityBuffer) error
}

// refreshBuffers writes onto each buffer what it comes to. Whether there is room is provision's to say.
func (r *Refresh) refreshBuffers(ctx context.Context) error {
	return tellBuffers(ctx, r.Buffers, nil, r.Now(), r.Log)
}

// settleBuffers writes onto each buffer whether there is room for its pods. That is for people only: what fails is
// logged.
func (p *Provision) settleBuffers(ctx context.Context, s cluster.Snapshot, decision plan.Plan) {
	if !slices.ContainsFunc(s.Pods, func(p cluster.Pod) bool { return p.Virtual }) {
		return
	}
	if err := tellBuffers(ctx, p.Buffers, buffers.PlacedPods(decision), p.Now(), p.Log); err != nil {
		p.Log.Warn("status of capacity buffers", "error", err)
	}
}

func tellBuffers(ctx context.Context, port Buffers, placed map[string]bool, now time.Time, log *slog.Logger) error {
	all, err := port.ListBuffers(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, b := range all {
		if !buffers.UpdateStatus(b, placed, now) {
			continue
		}
		name := b.Object.Namespace + "/" + b.Object.Name
		may, err := mayBegin(ctx, log, "write status of CapacityBuffer "+name)
		if err != nil {
			return err
		}
		if !may {
			continue
		}
		err = port.WriteBufferStatus(ctx, b.Object)
		switch {
		case isConflict(err):
			log.Info("CapacityBuffer "+name+": conflict, retrying in next pass", "error", err)
		case err != nil:
			errs = append(errs, fmt.Errorf("write status of CapacityBuffer %s: %w", name, err))
		default:
			log.Info("CapacityBuffer "+name, "replicas", b.Object.Status.Replicas)
		}
	}
	return errors.Join(errs...)
}

// placesReal reports whether the plan gives room that is there to a pod that exists and may go there soon. Room for
// virtual pods is nothing to wait for, nor is that for pods which still run on a node that has been drained for long.
func placesReal(s cluster.Snapshot, decision plan.Plan) bool {
	lingers := map[string]bool{}
	for _, h := range s.StateNodes() {
		lingers[h.Name()] = h.Claim != nil && h.Claim.BlockedForLong(s.Now)
	}
	stays := map[string]bool{}
	for _, p := range s.Pods {
		stays[p.Key()] = p.Virtual || p.NodeName != "" && lingers[p.NodeName]
	}
	return slices.ContainsFunc(decision.Existing, func(e plan.Placement) bool { return !stays[e.Pod] })
}
