package kube

import (
	"context"
	"slices"
	"strings"

	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/nodeclass/translate"
)

// Overlays reads and writes NodeOverlays.
type Overlays struct{ *connection }

// ListOverlays lists the NodeOverlays, sorted by name. A cluster that does not know the kind has none.
func (o Overlays) ListOverlays(ctx context.Context) ([]v1alpha1.NodeOverlay, error) {
	out, _, err := listAll(ctx, o.connection, listQuery{place: overlayPath()},
		func(l *v1alpha1.NodeOverlayList) []v1alpha1.NodeOverlay { return l.Items })
	if isNotFound(err) {
		return nil, nil
	}
	slices.SortFunc(out, func(a, b v1alpha1.NodeOverlay) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// ReadOfferingInputs reads what tells which instance types the pools may launch: a snapshot with nothing but pools,
// classes and overlays, and the overlays as they are stored.
func (o Overlays) ReadOfferingInputs(ctx context.Context) (cluster.Snapshot, []v1alpha1.NodeOverlay, error) {
	s := cluster.Snapshot{Now: o.now().UTC()}
	stored, err := o.ListOverlays(ctx)
	if err != nil || len(stored) == 0 {
		return s, stored, err
	}
	s.Overlays = translatePage(stored, translate.Overlay)
	classes, err := Classes(o).ListClasses(ctx)
	if err != nil {
		return s, nil, err
	}
	s.Classes = translatePage(classes, nodeclass.DescribeClass)
	pools, err := Pools(o).ListPools(ctx)
	for i := range pools {
		s.Pools = append(s.Pools, translate.Pool(&pools[i], s.Classes))
	}
	return s, stored, err
}

// WriteOverlayStatus stores the status of the overlay, on the condition that the overlay was not changed since it was
// read. On success the overlay given is as stored.
func (o Overlays) WriteOverlayStatus(ctx context.Context, overlay *v1alpha1.NodeOverlay) error {
	return writeStatus(ctx, o.connection, overlayPath(), v1alpha1.GroupVersion().WithKind(v1alpha1.NodeOverlayKind),
		overlay)
}
