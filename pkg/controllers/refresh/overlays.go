package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
)

// refreshOverlays writes onto each overlay whether it is in force. Nobody waits for it: every pass that uses overlays
// judges them itself.
func (r *Controller) refreshOverlays(ctx context.Context) error {
	s, stored, err := r.Overlays.ReadOfferingInputs(ctx)
	if err != nil || len(stored) == 0 {
		return err
	}
	if s.Catalog, _, err = r.Prices.ReadCatalog(ctx); err != nil {
		return err
	}
	verdicts := overlays.JudgeOverlays(s.Overlays, overlays.OfferingsByPool(s, func(name string) []instancetypes.Type {
		c, found := s.ClassOf(name)
		if !found {
			return nil
		}
		return instancetypes.ResolveTypes(s.Catalog, c, nil, r.Now())
	}))
	var errs []error
	for i := range stored {
		o := &stored[i]
		v := verdicts[slices.IndexFunc(verdicts, func(v overlays.Verdict) bool { return v.Overlay == o.Name })]
		if o.DeletionTimestamp != nil || !overlays.UpdateStatus(o, v, r.Now()) {
			continue
		}
		may, err := controllers.MayBegin(ctx, r.Log, "write status of NodeOverlay "+o.Name)
		if err != nil {
			return err
		}
		if !may {
			continue
		}
		err = r.Overlays.WriteOverlayStatus(ctx, o)
		switch {
		case controllers.IsConflict(err):
			r.Log.Info("NodeOverlay "+o.Name+": conflict, retrying in next refresh", "error", err)
		case err != nil:
			errs = append(errs, fmt.Errorf("refresh NodeOverlay %s: %w", o.Name, err))
		default:
			r.Log.Info("NodeOverlay "+o.Name, "inForce", v.InForce(), "invalid", v.Invalid, "conflict", v.Conflict)
		}
	}
	return errors.Join(errs...)
}
