package translate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// Overlay translates a NodeOverlay. One that is being deleted, or makes no sense, says so in Message.
func Overlay(o *v1alpha1.NodeOverlay) cluster.Overlay {
	out := cluster.Overlay{Name: o.Name, Weight: ptr.Deref(o.Spec.Weight, 0)}
	if out.Message = overlays.FindExcess(o); out.Message != "" {
		return out
	}
	problems := overlays.ValidateOverlay(o)
	if o.DeletionTimestamp != nil {
		problems = append(problems, "it is being deleted")
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
		out.Capacity = append(out.Capacity, resources.Extended{Name: string(name), Count: amountFrom(q, 0)})
	}
	slices.SortFunc(out.Capacity, func(a, b resources.Extended) int { return cmp.Compare(a.Name, b.Name) })
	out.Message = strings.Join(boundReasons(problems), "; ")
	return out
}

func pricesFrom(s v1alpha1.NodeOverlaySpec) (price *float64, change *cluster.PriceChange, err error) {
	if s.Price != nil {
		usd, err := strconv.ParseFloat(*s.Price, 64)
		if err == nil && !(usd >= 0 && usd <= overlays.MostPrice) {
			err = fmt.Errorf("price %.80q is not from 0 to %d USD per hour", *s.Price, overlays.MostPrice)
		}
		return &usd, nil, err
	}
	if s.PriceAdjustment == nil {
		return nil, nil, nil
	}
	text, percent := strings.CutSuffix(*s.PriceAdjustment, "%")
	n, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsNaN(n) || math.IsInf(n, 0)) {
		err = fmt.Errorf("priceAdjustment %.80q is no amount", *s.PriceAdjustment)
	}
	if percent {
		return nil, &cluster.PriceChange{Percent: n}, err
	}
	return nil, &cluster.PriceChange{USD: n}, err
}
