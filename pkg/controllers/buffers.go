package controllers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	"joiner.sh/pkg/model/buffers"
)

// WriteBufferStatuses writes onto each buffer what it comes to and, where room says which virtual pods found some,
// whether there is any. What changed meanwhile is left to the next pass.
func WriteBufferStatuses(ctx context.Context, port Buffers, room buffers.Room, now time.Time,
	log *slog.Logger) error {
	all, err := port.ListBuffers(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, b := range all {
		placed := room.Placed
		if b.Refusals = room.Refusals; !room.Stopped && b.Object.Strategy() == v1beta1.StrategyStopped {
			placed = nil
		}
		if !buffers.UpdateStatus(b, placed, now) {
			continue
		}
		name := b.Object.Namespace + "/" + b.Object.Name
		may, err := MayBegin(ctx, log, "write status of CapacityBuffer "+name)
		if err != nil {
			return err
		}
		if !may {
			continue
		}
		err = port.WriteBufferStatus(ctx, b.Object)
		switch {
		case IsConflict(err):
			log.Info("CapacityBuffer "+name+": conflict, retrying in next pass", "error", err)
		case err != nil:
			errs = append(errs, fmt.Errorf("write status of CapacityBuffer %s: %w", name, err))
		default:
			log.Info("CapacityBuffer "+name, "replicas", b.Object.Status.Replicas)
		}
	}
	return errors.Join(errs...)
}
