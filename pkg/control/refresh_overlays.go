package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"joiner/pkg/api/v1alpha1"
	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/overlay"
)

// Overlays reads and writes NodeOverlays. A write is refused with a Conflict when the object changed since it was read.
type Overlays interface {
	// Shelves reads pools, classes and overlays as a snapshot, and the overlays as they are stored.
	Shelves(ctx context.Context) (cluster.Snapshot, []v1alpha1.NodeOverlay, error)
	// WriteOverlayStatus stores the status; the overlay given is then as stored.
	WriteOverlayStatus(ctx context.Context, o *v1alpha1.NodeOverlay) error
}

// overlays writes onto each overlay whether it is in force. Nobody waits for it: every pass that uses overlays judges them itself.
func (r *Refresh) overlays(ctx context.Context) error {
	s, stored, err := r.Overlays.Shelves(ctx)
	if err != nil || len(stored) == 0 {
		return err
	}
	if s.Catalog, _, err = r.Prices.Catalog(ctx); err != nil {
		return err
	}
	verdicts := overlay.Judge(s.Overlays, overlay.Shelves(s, func(name string) []catalog.Type {
		c, found := s.ClassOf(name)
		if !found {
			return nil
		}
		return catalog.Resolve(s.Catalog, c, nil, r.Now())
	}))
	var errs []error
	for i := range stored {
		o := &stored[i]
		v := verdicts[slices.IndexFunc(verdicts, func(v overlay.Verdict) bool { return v.Overlay == o.Name })]
		if o.DeletionTimestamp != nil || !overlay.Update(o, v, r.Now()) {
			continue
		}
		err := r.Overlays.WriteOverlayStatus(ctx, o)
		switch {
		case isConflict(err):
			r.Log.Info("NodeOverlay "+o.Name+" was changed meanwhile, the next refresh looks again", "error", err)
		case err != nil:
			errs = append(errs, fmt.Errorf("refresh NodeOverlay %s: %w", o.Name, err))
		default:
			r.Log.Info("NodeOverlay "+o.Name, "inForce", v.InForce(), "invalid", v.Invalid, "conflict", v.Conflict)
		}
	}
	return errors.Join(errs...)
}
