package main

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/model/spotpools"
	"joiner.sh/pkg/nodeclaim/launch"
)

const className = "default"

// zoneNames are those of the market.
func zoneNames() []string { return []string{"us-west-2a", "us-west-2b", "us-west-2c"} }

// policy takes one of the pools that have room.
type policy interface {
	choosePool(m *market, open []*pool, in launch.Input) (*pool, error)
}

// lowestPrice takes the cheapest pool.
type lowestPrice struct{}

func (lowestPrice) choosePool(_ *market, open []*pool, _ launch.Input) (*pool, error) {
	return slices.MinFunc(open, func(a, b *pool) int { return cmp.Compare(a.price, b.price) }), nil
}

// requested asks EC2 for the pools that the decision code of Joiner names, and EC2 chooses. Without a record these are
// all pools, as Karpenter asks for them.
type requested struct{}

func (requested) choosePool(m *market, open []*pool, in launch.Input) (*pool, error) {
	o, err := launch.ChooseOrder(in)
	if err != nil {
		return nil, err
	}
	named := map[spotpools.Pool]bool{}
	for _, f := range o.Offers() {
		named[spotpools.Pool{Type: f.Type, Zone: f.Zone}] = true
	}
	among := slices.DeleteFunc(slices.Clone(open), func(p *pool) bool { return !named[p.Pool] })
	return allocatePool(among, m.deep), nil
}

// allocatePool chooses as price-capacity-optimized does: the cheapest of the pools that EC2 believes to be among the
// deepest third of the market, or the deepest where none is.
func allocatePool(from []*pool, deep float64) *pool {
	enough := slices.DeleteFunc(slices.Clone(from), func(p *pool) bool { return p.depth < deep })
	if len(enough) == 0 {
		return slices.MaxFunc(from, func(a, b *pool) int { return cmp.Compare(a.depth, b.depth) })
	}
	return slices.MinFunc(enough, func(a, b *pool) int { return cmp.Compare(a.price, b.price) })
}

// inputFor is what a launch of the market's nodes may see.
func inputFor(types []instancetypes.Type) launch.Input {
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: className}}
	class.Status.InstanceProfile = "profile"
	class.Status.SecurityGroups = []awsv1.SecurityGroup{{ID: "sg-1"}}
	ready := instancetypes.Class{Name: className, Ready: true, Family: instancetypes.AL2023,
		ZoneIDs: map[string]string{}, Images: []instancetypes.Image{{ID: "ami-1"}}}
	for _, z := range zoneNames() {
		class.Status.Subnets = append(class.Status.Subnets, awsv1.Subnet{ID: "subnet-" + z, Zone: z})
		ready.ZoneIDs[z] = z
	}
	return launch.Input{Class: class, Resolved: ready, Types: types,
		Cluster: launch.Cluster{Name: "bench", Endpoint: "https://api", CABundle: "Q0E=", DNSAddress: "172.20.0.10",
			ServiceCIDR: "172.20.0.0/16", Region: "us-west-2"},
		Claim: cluster.Claim{Name: "one", UID: "1", Pool: "default", Class: className,
			Requests: resources.List{CPU: 4000, Memory: 8 << 30, Pods: 10}}}
}

// learner is the record as the functions keep it.
type learner struct {
	record spotpools.Record
	podUSD float64
}

// learnHour counts one hour of the cluster.
func (l *learner) learnHour(now time.Time, nodes map[spotpools.Pool]float64, events []spotpools.Event) {
	l.record = l.record.FadeTo(now).CountHours(nodes).CountEvents(events, now)
}

// priceTypes returns the types with what interruptions are expected to cost by the record.
func (l *learner) priceTypes(types []instancetypes.Type, now time.Time) []instancetypes.Type {
	sum := spotpools.Summarize(l.record, nil, now)
	return instancetypes.Catalog{Spot: &sum}.AddInterruptionCosts(types, ordinaryCost(l.podUSD))
}

// priceByHazard returns the types with what interruptions will cost: the record is one of so many hours that it is the
// truth.
func (l *learner) priceByHazard(m *market, types []instancetypes.Type) []instancetypes.Type {
	const hours = 1e6
	sum := spotpools.Summary{}
	for _, p := range m.pools {
		sum.Own = append(sum.Own, spotpools.Cell{Pool: p.Pool,
			Evidence: spotpools.Evidence{Hours: hours, Interruptions: hours * p.hazard}})
	}
	return instancetypes.Catalog{Spot: &sum}.AddInterruptionCosts(types, ordinaryCost(l.podUSD))
}

// ordinaryCost is a cluster of which each node has about 15 pods.
func ordinaryCost(podUSD float64) instancetypes.InterruptionCost {
	return instancetypes.InterruptionCost{PodUSD: podUSD, Pod: resources.List{CPU: 512, Memory: 1 << 30}}
}
