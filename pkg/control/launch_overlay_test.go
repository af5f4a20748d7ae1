package control_test

import (
	"context"
	"testing"

	"joiner/pkg/cluster"
	"joiner/pkg/controltest"
	"joiner/pkg/require"
	"joiner/pkg/resource"
)

// overlaid is a cluster with an overlay on its first pool.
type overlaid struct {
	*controltest.Ports
	overlay cluster.Overlay
}

func (o overlaid) Snapshot(ctx context.Context) (cluster.Snapshot, error) {
	s, err := o.Ports.Snapshot(ctx)
	o.overlay.Requirements = require.NewSet(require.Of("karpenter.sh/nodepool", s.Pools[0].Name))
	s.Overlays = []cluster.Overlay{o.overlay}
	return s, err
}

// What an overlay of the claim's pool gives its nodes is in the claim's status: pods that need it are not packed again while the
// node starts.
func TestLaunchedAsOverlaid(t *testing.T) {
	w := newWorld()
	w.Run("web", 1, pattern(900, 1000))
	f := functions{w: w}
	p := w.Ports(controltest.Fault{})
	provision := f.provision(p)
	provision.Read = overlaid{p, cluster.Overlay{Name: "fuse", Capacity: []resource.Extended{{Name: "example.com/fuse", Count: 5}}}}
	if err := provision.Run(t.Context(), w.Now()); err != nil {
		t.Fatal(err)
	}
	claims := w.Claims()
	if len(claims) != 1 {
		t.Fatalf("%d claims", len(claims))
	}
	if c := claims[0]; c.Capacity.Get("example.com/fuse") != 5 || c.Allocatable.Get("example.com/fuse") != 5 {
		t.Errorf("capacity %s, allocatable %s", c.Capacity, c.Allocatable)
	}
}
