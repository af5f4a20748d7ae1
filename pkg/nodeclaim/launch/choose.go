package launch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/bootstrap"
)

// Allocation strategies of CreateFleet.
const (
	priceCapacity       = "price-capacity-optimized"
	lowestPrice         = "lowest-price"
	prioritizedSpot     = "capacity-optimized-prioritized"
	prioritizedOnDemand = "prioritized"
)

// ChooseOrder returns the CreateFleet order for one claim, or for the batch that it launches with.
//
// The error is a *instancetypes.NoCapacityError when no offering is left, a *NotReadyError when the class must change
// first, and a *ReadinessUnknownError when it is too early to tell.
func ChooseOrder(in Input) (Order, error) {
	if err := classReady(in); err != nil {
		return Order{}, err
	}
	candidates, err := filterTypes(in)
	if err != nil {
		return Order{}, err
	}
	o := Order{ClaimName: in.Claim.Name, ClaimUID: in.Claim.UID, Batch: in.Batch,
		CapacityType: capacityType(candidates)}
	if in.Batch.ID != "" {
		o.ClaimName, o.ClaimUID = "", ""
	}
	if g := in.Resolved.Placement; g != nil {
		o.Group = g.ID
	}
	o.Market = marketOf(candidates)
	o.Strategy = allocationStrategy(o.CapacityType, in.Claim.Annotations[karpv1.AnnotationPriceOverlay] == "true")
	if c := in.Class.Spec.Context; c != nil && in.Claim.Annotations[karpv1.AnnotationMinValuesRelaxed] != "true" {
		o.Context = *c
	}
	tags := staticTags(in)
	o.Tags = sortedTags(tags)
	o.InstanceTags = sortedTags(claimTags(in, tags))
	o.Annotations = map[string]string{
		awsv1.AnnotationHash:            in.Class.DriftHash(in.Cluster.CABundle),
		awsv1.AnnotationHashVersion:     in.Class.DriftHashVersion(),
		awsv1.AnnotationInstanceProfile: profileName(in.Class),
	}
	if o.Templates, err = templatesFor(in, o, candidates); err != nil {
		return Order{}, err
	}
	return o, nil
}

// classReady refuses a class that cannot be launched with, or that asks for what is not modelled.
func classReady(in Input) error {
	no := func(format string, args ...any) error {
		return &NotReadyError{Class: in.Claim.Class, Why: fmt.Sprintf(format, args...)}
	}
	switch {
	case in.Class == nil:
		return no("it does not exist")
	case !in.Resolved.Ready && in.Class.DeletionTimestamp == nil && readinessUnknown(in.Class):
		return &ReadinessUnknownError{Class: in.Class.Name}
	case !in.Resolved.Ready:
		return no("%s", cmp.Or(in.Resolved.Message, "the resolved class says so"))
	case len(in.Class.Status.Subnets) == 0:
		return no("it has no subnets")
	case len(in.Class.Status.SecurityGroups) == 0:
		return no("it has no security groups")
	case profileName(in.Class) == "":
		return no("it has no instance profile")
	case in.Resolved.Placement != nil && in.Resolved.Placement.Strategy == "":
		return no("its placement group %s was not found", in.Resolved.Placement.Selected())
	}
	if key, found := awsv1.RestrictedTag(in.Class.Spec.Tags); found {
		return no("tag %q in spec.tags is restricted", key)
	}
	return nil
}

func readinessUnknown(c *awsv1.EC2NodeClass) bool {
	k, ok := c.StatusConditions().Get(awsv1.ConditionReady)
	return !ok || k.Status == metav1.ConditionUnknown
}

func profileName(c *awsv1.EC2NodeClass) string {
	return cmp.Or(c.Status.InstanceProfile, ptr.Deref(c.Spec.InstanceProfile, ""))
}

// capacityType is the first of reserved and spot that any candidate is to be had as, else on-demand. This is how a
// launch falls back once the refused offerings are marked as unavailable.
func capacityType(cs []candidate) string {
	for _, want := range []string{instancetypes.Reserved, instancetypes.Spot} {
		for _, c := range cs {
			if slices.ContainsFunc(c.offerings, func(o instancetypes.Offering) bool { return o.CapacityType == want }) {
				return want
			}
		}
	}
	return instancetypes.OnDemand
}

func allocationStrategy(capacityType string, pricesOverlaid bool) string {
	switch {
	case capacityType == instancetypes.Spot && pricesOverlaid:
		return prioritizedSpot
	case capacityType == instancetypes.Spot:
		return priceCapacity
	case pricesOverlaid:
		return prioritizedOnDemand
	}
	return lowestPrice
}

// templatesFor makes one template for each different content and gives it the offerings that use it. Where that are
// more than a request takes, the others' offerings are not asked for.
func templatesFor(in Input, o Order, cs []candidate) ([]Template, error) {
	subnets := subnetOfZone(in)
	byGroup := map[templateGroup]int{}
	byName := map[string]int{}
	var out []Template
	for _, c := range cs {
		for _, f := range c.offerings {
			if f.CapacityType != o.CapacityType {
				continue
			}
			g, devices := groupOf(in, c.t, f)
			i, known := byGroup[g]
			if !known {
				t, err := newTemplate(in, o, g, devices)
				if err != nil {
					return nil, templateError(in, err)
				}
				if i, known = byName[t.Name]; !known {
					i = len(out)
					out = append(out, t)
					byName[t.Name] = i
				}
				byGroup[g] = i
			}
			out[i].Overrides = append(out[i].Overrides,
				Override{OfferingKey: f.OfferingKey, SubnetID: subnets[f.Zone], ImageID: c.t.ImageID, Price: f.Price,
					Pods: c.t.MaxPods})
		}
	}
	for _, t := range out {
		slices.SortFunc(t.Overrides, func(a, b Override) int {
			return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Zone, b.Zone))
		})
	}
	if len(out) > maxTemplates {
		out = mostUseful(in.Claim.Requirements, out, cs)
	}
	slices.SortFunc(out, func(a, b Template) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// templateError says that user data which cannot be made is the class's fault, or that nothing can be bought for the
// claim.
func templateError(in Input, err error) error {
	if bad, ok := errors.AsType[*bootstrap.Error](err); ok {
		if bad.Reason == bootstrap.ReasonRegistration {
			return &instancetypes.NoCapacityError{Why: bad.Reason + ": " + bad.Error()}
		}
		return &NotReadyError{Class: in.Class.Name, Why: bad.Reason + ": " + bad.Error()}
	}
	return err
}
