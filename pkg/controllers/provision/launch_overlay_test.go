package provision_test

import (
	"context"
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// overlaid is a cluster with an overlay on its first pool.
type overlaid struct {
	*fake.Ports
	overlay cluster.Overlay
}

func (o overlaid) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	s, err := o.Ports.ReadSnapshot(ctx)
	o.overlay.Requirements = requirements.NewSet(requirements.Of("karpenter.sh/nodepool", s.Pools[0].Name))
	s.Overlays = []cluster.Overlay{o.overlay}
	return s, err
}

// What an overlay of the claim's pool gives its nodes is in the claim's status: pods that need it are not packed again
// while the node starts.
func TestLaunchedAsOverlaid(t *testing.T) {
	w := controllertest.NewWorld()
	w.RunApp("web", 1, controllertest.PodOf(900, 1000))
	f := controllertest.Functions{World: w}
	p := w.Ports(fake.Fault{})
	provision := f.Provision(p)
	provision.Read = overlaid{p, cluster.Overlay{Name: "fuse", Capacity: []resources.Extended{{Name: "example.com/fuse", Count: 5}}}}
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
