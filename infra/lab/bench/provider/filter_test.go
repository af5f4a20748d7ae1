package provider

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	peerv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instance/filter"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/yaml"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclaim/launch"
)

const (
	launches    = 6_000
	launchTypes = 60 // that one request may name
)

// launchCase is a launch of random types with random offerings, no two of one price.
type launchCase struct {
	*rand.Rand
	prices []int
	types  []instancetypes.Type
	claim  cluster.Claim
}

func newLaunchCase(seed uint64) *launchCase {
	s := &launchCase{Rand: rand.New(rand.NewPCG(seed, 0))}
	s.prices = s.Perm(3_000)
	kinds := 1 + s.IntN(12)
	if s.IntN(8) == 0 {
		kinds = 50 + s.IntN(60) // more than one request may name
	}
	reserved := s.IntN(3) == 0
	for i := range kinds {
		s.types = append(s.types, s.newType(i, reserved))
	}
	s.claim = cluster.Claim{Name: "claim", UID: "uid", Pool: "general", Class: "default", Requirements: s.requirements(), Requests: resources.List{CPU: s.Int64N(12_000)}}
	return s
}

func (s *launchCase) price() float64 {
	p := s.prices[0]
	s.prices = s.prices[1:]
	return float64(p+1) / 1_000
}

func (s *launchCase) newType(i int, reserved bool) instancetypes.Type {
	family, size := fmt.Sprintf("f%d", s.IntN(5)), fmt.Sprintf("s%d", i)
	if s.IntN(10) == 0 {
		size = "metal-" + size
	}
	t := instancetypes.Type{Name: family + "." + size, ImageID: "ami-1", MaxPods: 110, Capacity: resources.List{CPU: int64(1+s.IntN(16)) * 1_000, Memory: 64 << 30, Pods: 110}}
	if s.IntN(10) == 0 {
		t.Capacity = t.Capacity.With(instancetypes.ResourceNVIDIA, 1)
	}
	t.Allocatable = t.Capacity
	for _, zone := range []string{"a", "b", "c"} {
		for _, ct := range []string{instancetypes.Spot, instancetypes.OnDemand} {
			if s.IntN(4) > 0 {
				t.Offerings = append(t.Offerings, instancetypes.Offering{OfferingKey: instancetypes.OfferingKey{CapacityType: ct, Type: t.Name, Zone: zone}, Price: s.price(), Available: s.IntN(5) > 0})
			}
		}
		for n := 0; reserved && s.IntN(3) == 0; n++ {
			t.Offerings = append(t.Offerings, s.reservation(t.Name, zone, n))
		}
	}
	instancetypes.SortOfferings(t.Offerings)
	t.Requirements = requirements.NewSet(requirements.Of(instancetypes.LabelType, t.Name), requirements.Of(instancetypes.LabelFamily, family), requirements.Of(instancetypes.LabelSize, size),
		requirements.Of(instancetypes.LabelZone, "a", "b", "c"), requirements.Of(instancetypes.LabelCapacityType, instancetypes.Spot, instancetypes.OnDemand, instancetypes.Reserved))
	return t
}

// reservation has room for another number of instances than the others of its zone, or for none.
func (s *launchCase) reservation(name, zone string, n int) instancetypes.Offering {
	r := &instancetypes.Reservation{ID: fmt.Sprintf("cr-%s-%s-%d", name, zone, n), Kind: "default", Remaining: int64(n*10 + 1 + s.IntN(9)), Interruptible: s.IntN(4) == 0}
	if s.IntN(3) == 0 {
		r.Kind, r.Interruptible = instancetypes.CapacityBlock, false
	}
	if s.IntN(4) == 0 {
		r.Remaining = 0
	}
	return instancetypes.Offering{OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.Reserved, Type: name, Zone: zone}, Price: s.price() / 1e7, Available: r.Remaining > 0 && s.IntN(6) > 0, Reservation: r}
}

func (s *launchCase) requirements() requirements.Set {
	all := []requirements.Requirement{}
	if s.IntN(2) == 0 {
		all = append(all, requirements.Of(instancetypes.LabelCapacityType, [][]string{{instancetypes.Spot}, {instancetypes.OnDemand}, {instancetypes.Spot, instancetypes.OnDemand}, {instancetypes.Reserved}, {instancetypes.Reserved, instancetypes.OnDemand}}[s.IntN(5)]...))
	}
	if s.IntN(3) == 0 {
		all = append(all, requirements.Of(instancetypes.LabelZone, [][]string{{"a"}, {"a", "b"}, {"b", "c"}}[s.IntN(3)]...))
	}
	if s.IntN(4) == 0 {
		all = append(all, requirements.Of(instancetypes.LabelFamily, "f0", "f1", "f2"))
	}
	if s.IntN(3) == 0 {
		key := []string{instancetypes.LabelType, instancetypes.LabelFamily, instancetypes.LabelZone}[s.IntN(3)]
		r := requirements.Any(key)
		r.MinValues = 1 + s.IntN(3)
		all = append(all, r)
	}
	return requirements.NewSet(all...)
}

// ours are the offerings that Joiner asks for, nil for none.
func (s *launchCase) ours(t *testing.T) []string {
	o, err := launch.ChooseOrder(launch.Input{Claim: s.claim, Class: launchClass(t), Resolved: instancetypes.Class{Name: "default", Ready: true}, Types: s.types,
		Cluster: launch.Cluster{Name: "demo", Endpoint: "https://api", CABundle: "Q0E=", DNSAddress: "172.20.0.10", ServiceCIDR: "172.20.0.0/16", Region: "r"}})
	if _, none := errors.AsType[*instancetypes.NoCapacityError](err); none {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range o.Templates {
		for _, v := range m.Overrides {
			out = append(out, v.OfferingKey.String()+" "+m.Reservation.ID)
		}
	}
	slices.Sort(out)
	return out
}

func launchClass(t *testing.T) *awsv1.EC2NodeClass {
	c := &awsv1.EC2NodeClass{}
	if err := yaml.UnmarshalStrict([]byte(`{metadata: {name: default}, spec: {amiFamily: AL2023, role: node}, status: {instanceProfile: p,
  subnets: [{id: subnet-a, zone: a}, {id: subnet-b, zone: b}, {id: subnet-c, zone: c}], securityGroups: [{id: sg-1}], amis: [{id: ami-1, requirements: []}]}}`), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// theirs are the offerings that Karpenter asks for, nil for none: its filters in their order, and then its choice of
// capacity type. It is not known where Karpenter panics, which 1.14 does over a capacity block that cannot be had
// beside others.
func (s *launchCase) theirs() (offerings []string, known bool) {
	defer func() {
		if blocksPanic && recover() != nil {
			known = false
		}
	}()
	want := peerRequirements(s.claim.Requirements)
	var types []*cloudprovider.InstanceType
	for _, t := range s.types {
		types = append(types, peerOf(t))
	}
	for _, f := range []filter.Filter{launchableFilter(want, peerAmounts(s.claim.Requests)), filter.CapacityReservationTypeFilter(want), filter.CapacityBlockFilter(want),
		filter.ReservedOfferingFilter(want), filter.ExoticInstanceTypeFilter(want), filter.SpotOfferingFilter(want)} {
		if types, _ = f.FilterReject(types); len(types) == 0 {
			return nil, true
		}
	}
	ctx := options.ToContext(context.Background(), &options.Options{MinValuesPolicy: options.MinValuesPolicyStrict})
	left, err := cloudprovider.InstanceTypes(types).Truncate(ctx, want, launchTypes)
	if err != nil {
		return nil, true
	}
	byCapacityType := map[string][]string{}
	for _, t := range left {
		for _, o := range t.Offerings.Available().Compatible(want) {
			if id := o.ReservationID(); id == "" || o.ReservationCapacity > 0 {
				offering := instancetypes.OfferingKey{CapacityType: o.CapacityType(), Type: t.Name, Zone: o.Zone()}
				byCapacityType[o.CapacityType()] = append(byCapacityType[o.CapacityType()], offering.String()+" "+id)
			}
		}
	}
	for _, ct := range []string{instancetypes.Reserved, instancetypes.Spot, instancetypes.OnDemand} {
		if out := byCapacityType[ct]; len(out) > 0 {
			slices.Sort(out)
			return out, true
		}
	}
	return nil, true
}

func peerRequirements(s requirements.Set) scheduling.Requirements {
	out := scheduling.NewRequirements()
	for _, r := range s.All() {
		var least *int
		if r.MinValues > 0 {
			least = &r.MinValues
		}
		out.Add(scheduling.NewRequirementWithFlexibility(r.Key, corev1.NodeSelectorOperator(r.Operator()), least, r.Values...))
	}
	return out
}

func peerAmounts(l resources.List) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range l.Names() {
		if name == resources.CPU {
			out[corev1.ResourceCPU] = *apiresource.NewMilliQuantity(l.CPU, apiresource.DecimalSI)
			continue
		}
		out[corev1.ResourceName(name)] = *apiresource.NewQuantity(l.Get(name), apiresource.BinarySI)
	}
	return out
}

func peerOf(t instancetypes.Type) *cloudprovider.InstanceType {
	out := &cloudprovider.InstanceType{Name: t.Name, Requirements: peerRequirements(t.Requirements), Capacity: peerAmounts(t.Capacity),
		Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: peerAmounts(t.Capacity.Sub(t.Allocatable))}}
	for _, o := range t.Offerings {
		peer := &cloudprovider.Offering{Price: o.Price, Available: o.Available, Requirements: scheduling.NewLabelRequirements(map[string]string{
			corev1.LabelTopologyZone: o.Zone, karpv1.CapacityTypeLabelKey: o.CapacityType})}
		if r := o.Reservation; r != nil {
			peer.ReservationCapacity, peer.Available = int(r.Remaining), o.Available || fullIsAvailable && r.Remaining == 0
			for k, v := range map[string]string{cloudprovider.ReservationIDLabel: r.ID, peerv1.LabelCapacityReservationType: r.Kind, peerv1.LabelCapacityReservationInterruptible: strconv.FormatBool(r.Interruptible)} {
				peer.Requirements.Add(scheduling.NewRequirement(k, corev1.NodeSelectorOpIn, v))
			}
		} else {
			for _, k := range []string{cloudprovider.ReservationIDLabel, peerv1.LabelCapacityReservationType, peerv1.LabelCapacityReservationInterruptible} {
				peer.Requirements.Add(scheduling.NewRequirement(k, corev1.NodeSelectorOpDoesNotExist))
			}
		}
		out.Offerings = append(out.Offerings, peer)
	}
	return out
}

// A launch asks for the offerings that Karpenter asks for: of random types, prices, reservations and capacity blocks,
// and under every minValues.
func TestLaunchesAskForWhatKarpentersDo(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(launches) {
		s := newLaunchCase(seed)
		if countsForbiddenValues && slices.ContainsFunc(s.claim.Requirements.All(), func(r requirements.Requirement) bool { return r.MinValues > 0 && !r.Not }) {
			continue
		}
		want, known := s.theirs()
		got := s.ours(t)
		if !known {
			seen["unknown"]++
			continue
		}
		if !slices.Equal(want, got) {
			t.Fatalf("seed %d, claim requires %s and requests %s:\n%v\nKarpenter asks for\n%v\nof %s", seed, s.claim.Requirements, s.claim.Requests, got, want, describeOfferings(s.types))
		}
		if len(got) > 0 {
			seen["launches"]++
			if slices.ContainsFunc(got, func(o string) bool { return o[len(o)-1] != ' ' }) {
				seen["reserved"]++
			}
			if slices.ContainsFunc(s.claim.Requirements.All(), func(r requirements.Requirement) bool { return r.MinValues > 0 }) {
				seen["minValues"]++
			}
		}
	}
	t.Logf("of %d: %v", launches, seen)
	for what, least := range map[string]int{"launches": launches / 2, "reserved": launches / 10, "minValues": launches / 20} {
		if seen[what] < least {
			t.Errorf("only %d %s of %d", seen[what], what, launches)
		}
	}
}

// describeOfferings lists types and offerings for people.
func describeOfferings(types []instancetypes.Type) string {
	text := ""
	for _, t := range types {
		text += "\n" + t.Name + " " + t.Capacity.String()
		for _, o := range t.Offerings {
			text += fmt.Sprintf("\n  %s %s at %g, to be had: %t", o.CapacityType, o.Zone, o.Price, o.Available)
			if o.Reservation != nil {
				text += fmt.Sprintf(" %+v", *o.Reservation)
			}
		}
	}
	return text
}
