package kube

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"joiner/pkg/api/v1alpha1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/overlays"
	"joiner/pkg/model/requirements"
	"joiner/pkg/model/resources"
	"joiner/pkg/nodeclass"
)

// ListOverlays lists the NodeOverlays, sorted by name. A cluster that does not know the kind has none.
func (c *Client) ListOverlays(ctx context.Context) ([]v1alpha1.NodeOverlay, error) {
	out, _, err := listAll(ctx, c, listQuery{place: overlayPath()},
		func() *v1alpha1.NodeOverlayList { return &v1alpha1.NodeOverlayList{} },
		func(l *v1alpha1.NodeOverlayList) []v1alpha1.NodeOverlay { return l.Items })
	if isNotFound(err) {
		return nil, nil
	}
	slices.SortFunc(out, func(a, b v1alpha1.NodeOverlay) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// ReadOfferingInputs reads what tells which instance types the pools may launch: a snapshot with nothing but pools,
// classes and overlays, and the overlays as they are stored.
func (c *Client) ReadOfferingInputs(ctx context.Context) (cluster.Snapshot, []v1alpha1.NodeOverlay, error) {
	s := cluster.Snapshot{Now: c.now().UTC()}
	stored, err := c.ListOverlays(ctx)
	if err != nil || len(stored) == 0 {
		return s, stored, err
	}
	s.Overlays = translatePage(stored, overlayFrom)
	classes, err := c.ListClasses(ctx)
	if err != nil {
		return s, nil, err
	}
	s.Classes = translatePage(classes, nodeclass.DescribeClass)
	pools, err := c.ListPools(ctx)
	for i := range pools {
		s.Pools = append(s.Pools, poolFrom(&pools[i], s.Classes))
	}
	return s, stored, err
}

// WriteOverlayStatus stores the status of the overlay, on the condition that the overlay was not changed since it was
// read. On success the overlay given is as stored.
func (c *Client) WriteOverlayStatus(ctx context.Context, o *v1alpha1.NodeOverlay) error {
	what := apiCall{verb: "write status of", place: overlayPath(), name: o.Name}
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
	problems := overlays.ValidateOverlay(o)
	if o.DeletionTimestamp != nil {
		problems = append(problems, "it is being deleted")
	}
	if o.Spec.Weight != nil {
		out.Weight = *o.Spec.Weight
	}
	var rs []requirements.Requirement
	for _, e := range o.Spec.Requirements {
		r, err := requirements.NewRequirement(stableKey(e.Key), requirements.Operator(e.Operator), e.Values...)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		rs = append(rs, r)
	}
	out.Requirements = requirements.NewSet(rs...)
	var err error
	if out.Price, out.Change, err = pricesFrom(o.Spec); err != nil {
		problems = append(problems, err.Error())
	}
	for name, q := range o.Spec.Capacity {
		out.Capacity = append(out.Capacity, resources.Extended{Name: string(name), Count: q.Value()})
	}
	slices.SortFunc(out.Capacity, func(a, b resources.Extended) int { return cmp.Compare(a.Name, b.Name) })
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
