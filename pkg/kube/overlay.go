package kube

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"joiner/pkg/api/v1alpha1"
	"joiner/pkg/cluster"
	"joiner/pkg/nodeclass"
	"joiner/pkg/overlay"
	"joiner/pkg/require"
	"joiner/pkg/resource"
)

// Overlays lists the NodeOverlays, sorted by name. A cluster that does not know the kind has none.
func (c *Client) Overlays(ctx context.Context) ([]v1alpha1.NodeOverlay, error) {
	out, _, err := list(ctx, c, query{place: overlays()}, func() *v1alpha1.NodeOverlayList { return &v1alpha1.NodeOverlayList{} },
		func(l *v1alpha1.NodeOverlayList) []v1alpha1.NodeOverlay { return l.Items })
	if isNotFound(err) {
		return nil, nil
	}
	slices.SortFunc(out, func(a, b v1alpha1.NodeOverlay) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// Shelves reads what tells which instance types the pools may launch: a snapshot with nothing but pools, classes and overlays, and
// the overlays as they are stored.
func (c *Client) Shelves(ctx context.Context) (cluster.Snapshot, []v1alpha1.NodeOverlay, error) {
	s := cluster.Snapshot{Now: c.now().UTC()}
	stored, err := c.Overlays(ctx)
	if err != nil || len(stored) == 0 {
		return s, stored, err
	}
	s.Overlays = translated(stored, overlayFrom)
	classes, err := c.Classes(ctx)
	if err != nil {
		return s, nil, err
	}
	s.Classes = translated(classes, nodeclass.Describe)
	pools, err := c.Pools(ctx)
	for i := range pools {
		s.Pools = append(s.Pools, poolFrom(&pools[i], s.Classes))
	}
	return s, stored, err
}

// WriteOverlayStatus stores the status of the overlay, on the condition that the overlay was not changed since it was read. On
// success the overlay given is as stored.
func (c *Client) WriteOverlayStatus(ctx context.Context, o *v1alpha1.NodeOverlay) error {
	what := call{verb: "write status of", place: overlays(), name: o.Name}
	in := o.DeepCopy()
	in.APIVersion, in.Kind = v1alpha1.GroupVersion().String(), v1alpha1.NodeOverlayKind
	out := &v1alpha1.NodeOverlay{}
	if err := c.putStatus(ctx, what, in, out); err != nil {
		return err
	}
	*o = *out
	return nil
}

// overlayFrom translates a NodeOverlay. One that is being deleted, or makes no sense, says so in Message.
func overlayFrom(o *v1alpha1.NodeOverlay) cluster.Overlay {
	out := cluster.Overlay{Name: o.Name}
	problems := overlay.Problems(o)
	if o.DeletionTimestamp != nil {
		problems = append(problems, "it is being deleted")
	}
	if o.Spec.Weight != nil {
		out.Weight = *o.Spec.Weight
	}
	var rs []require.Requirement
	for _, e := range o.Spec.Requirements {
		r, err := require.New(stableKey(e.Key), require.Operator(e.Operator), e.Values...)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		rs = append(rs, r)
	}
	out.Requirements = require.NewSet(rs...)
	var err error
	if out.Price, out.Change, err = pricesFrom(o.Spec); err != nil {
		problems = append(problems, err.Error())
	}
	for name, q := range o.Spec.Capacity {
		out.Capacity = append(out.Capacity, resource.Extended{Name: string(name), Count: q.Value()})
	}
	slices.SortFunc(out.Capacity, func(a, b resource.Extended) int { return cmp.Compare(a.Name, b.Name) })
	out.Message = strings.Join(problems, "; ")
	return out
}

func pricesFrom(s v1alpha1.NodeOverlaySpec) (price *float64, change *cluster.PriceChange, err error) {
	if s.Price != nil {
		usd, err := strconv.ParseFloat(*s.Price, 64)
		return &usd, nil, err
	}
	if s.PriceAdjustment == nil {
		return nil, nil, nil
	}
	text, percent := strings.CutSuffix(*s.PriceAdjustment, "%")
	n, err := strconv.ParseFloat(text, 64)
	if percent {
		return nil, &cluster.PriceChange{Percent: n}, err
	}
	return nil, &cluster.PriceChange{USD: n}, err
}
