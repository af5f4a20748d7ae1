package refresh

import (
	"context"

	"joiner.sh/pkg/model/metrics"
)

// measureFleet says how the fleet stands. What cannot be read now is read by the next refresh.
func (r *Controller) measureFleet(ctx context.Context) error {
	if r.Metrics == nil {
		return nil
	}
	claims, err := r.Pools.ListClaims(ctx)
	if err != nil {
		return err
	}
	c, _, err := r.Prices.ReadCatalog(ctx)
	if err != nil {
		return err
	}
	r.Metrics.Put(metrics.FleetMetrics(claims, c, r.Now())...)
	return nil
}
