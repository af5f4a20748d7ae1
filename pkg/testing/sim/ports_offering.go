package sim

import (
	"context"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/model/buffers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// offeringPorts read what is sold. There are no overlays and no buffers.
type offeringPorts struct {
	*caller
	catalog *catalog
}

// Refresh stores a catalog that is the same for ever.
func (p *offeringPorts) Refresh(ctx context.Context) (string, error) {
	return "", tryPort(ctx, p.caller, "refresh catalog", "", func() error { return nil })
}

// ReadOfferingInputs has no overlays.
func (p *offeringPorts) ReadOfferingInputs(ctx context.Context) (cluster.Snapshot, []v1alpha1.NodeOverlay, error) {
	return cluster.Snapshot{}, nil, tryPort(ctx, p.caller, "list overlays", "", func() error { return nil })
}

// WriteOverlayStatus is not asked for: there are no overlays.
func (p *offeringPorts) WriteOverlayStatus(context.Context, *v1alpha1.NodeOverlay) error { return nil }

// ListBuffers has none.
func (p *offeringPorts) ListBuffers(ctx context.Context) ([]buffers.Buffer, error) {
	return nil, tryPort(ctx, p.caller, "list buffers", "", func() error { return nil })
}

// WriteBufferStatus is not asked for: there are no buffers.
func (p *offeringPorts) WriteBufferStatus(context.Context, *v1beta1.CapacityBuffer) error { return nil }

// ReadCatalog gives the catalog.
func (p *offeringPorts) ReadCatalog(ctx context.Context) (c instancetypes.Catalog, why string, err error) {
	c, err = callPort(ctx, p.caller, "read catalog", "", func() (instancetypes.Catalog,
		error) {
		return p.catalog.market, nil
	})
	return c, "", err
}
