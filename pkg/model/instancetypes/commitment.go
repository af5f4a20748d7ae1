package instancetypes

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Commitment is capacity that the account pays for, used or not: Reserved Instances, or a Savings Plan. EC2 applies it
// by itself to instances that run on demand, those in capacity reservations included; nothing names it at a launch.
type Commitment struct {
	ID string `json:"id"`

	// Reserved Instances.
	Type     string `json:"type,omitempty"`     // instance type that they are for; empty for a Savings Plan
	Zone     string `json:"zone,omitempty"`     // of zonal ones, empty for regional ones
	Flexible bool   `json:"flexible,omitempty"` // they are for every size of the family, by the parts of Parts

	// Rates holds what a Savings Plan takes for an hour of each instance type that it is for, in USD.
	Rates map[string]float64 `json:"rates,omitempty"`

	// Room is the amount that it covers at a time, in instances of Type. Of flexible ones it is in quarters of the
	// normalized unit, of a Savings Plan in millionths of a USD per hour.
	Room int64 `json:"room"`
}

// RunningCount is the number of instances of a type that run on demand in a zone.
type RunningCount struct {
	Type  string `json:"type"`
	Zone  string `json:"zone"`
	Count int64  `json:"count"`
}

// InstanceUse is an instance that runs on demand or in a capacity reservation, or will, and so draws on commitments.
// Zone is empty while it is not known.
type InstanceUse struct {
	Name, Type, Zone string
	Since            time.Time
}

// CommitmentDraw is the amount that an instance takes of one commitment, in the measure of its Room.
type CommitmentDraw struct {
	Commitment string `json:"commitment"`
	Amount     int64  `json:"amount"`
}

// millionth is the part of a USD in which Savings Plans count.
const millionth = 1e-6

// applicationOrder is the place of the commitment in the order in which EC2 applies them: Reserved Instances first, of
// them those that fit least, then Savings Plans of one family, then the others.
func (c Commitment) applicationOrder() int {
	switch {
	case c.Type != "" && c.Zone != "":
		return 0
	case c.Type != "" && !c.Flexible:
		return 1
	case c.Type != "":
		return 2
	case c.oneFamily():
		return 3
	}
	return 4
}

// oneFamily reports whether all types of a Savings Plan are of one family.
func (c Commitment) oneFamily() bool {
	family := ""
	for name := range c.Rates {
		f, _, _ := strings.Cut(name, ".")
		if family != "" && f != family {
			return false
		}
		family = f
	}
	return true
}

// Amount returns the amount that one instance takes of the commitment, 0 for one that it is not for.
func (c Commitment) Amount(typ, zone string) int64 {
	switch {
	case c.Type == "":
		return int64(math.Ceil(c.Rates[typ]/millionth - 1e-3))
	case c.Zone != "" && c.Zone != zone:
		return 0
	case !c.Flexible:
		if typ == c.Type {
			return 1
		}
		return 0
	}
	family, _, _ := strings.Cut(c.Type, ".")
	if mine, _, _ := strings.Cut(typ, "."); mine != family {
		return 0
	}
	return NormalizedSize(typ)
}

// NormalizedSize is the normalized size of an instance type in quarters of a unit, in which size-flexible Reserved
// Instances count: 1 for nano, 16 for large, 32 for each xlarge. It is 0 for sizes that have none, such as metal.
func NormalizedSize(typ string) int64 {
	_, size, _ := strings.Cut(typ, ".")
	// each is twice the one before
	if i := slices.Index([]string{"nano", "micro", "small", "medium", "large", "xlarge"}, size); i >= 0 {
		return 1 << i
	}
	times, ok := strings.CutSuffix(size, "xlarge")
	n, err := strconv.ParseUint(times, 10, 16)
	if !ok || err != nil {
		return 0
	}
	return 32 * int64(n)
}

// AllotCommitments gives the commitments to what runs, as EC2 does: elsewhere in the account first, then the uses, the
// oldest first. It returns which part of each use is paid for, by name, and what room every commitment has left, by its
// id.
func (c Catalog) AllotCommitments(uses []InstanceUse) (paid map[string]float64, left map[string]int64) {
	paid, left = map[string]float64{}, map[string]int64{}
	if len(c.Commitments) == 0 {
		return paid, left
	}
	all := make([]commitmentUse, 0, len(uses)+len(c.Elsewhere))
	for _, r := range c.Elsewhere {
		all = append(all, newCommitmentUse(InstanceUse{Type: r.Type, Zone: r.Zone}, float64(r.Count), c))
	}
	for _, u := range uses {
		all = append(all, newCommitmentUse(u, 1, c))
	}
	for _, k := range c.inOrder() {
		left[k.ID] = k.Room
		slices.SortFunc(all, k.compareUses)
		for i := range all {
			left[k.ID] = all[i].drawFrom(k, left[k.ID])
		}
	}
	for _, o := range all {
		if o.Name != "" && o.part < 1 {
			paid[o.Name] = 1 - o.part
		}
	}
	return paid, left
}

// inOrder are the commitments as EC2 applies them.
func (c Catalog) inOrder() []Commitment {
	return slices.SortedFunc(slices.Values(c.Commitments), func(a, b Commitment) int {
		return cmp.Or(cmp.Compare(a.applicationOrder(), b.applicationOrder()), cmp.Compare(a.ID, b.ID))
	})
}

// commitmentUse is a use of which part is not paid for yet; of instances that nobody names it is a number of them.
type commitmentUse struct {
	InstanceUse
	part float64
	list float64 // what it costs on demand, USD per hour
}

func newCommitmentUse(u InstanceUse, n float64, c Catalog) commitmentUse {
	f, _ := c.Find(u.Type)
	return commitmentUse{u, n, f.OnDemandUSD}
}

// compareUses orders what a commitment is applied to: flexible Reserved Instances to the smallest sizes first, Savings
// Plans where they save the largest part of the price. Among equals those elsewhere come first, then the oldest.
func (c Commitment) compareUses(a, b commitmentUse) int {
	saves := func(o commitmentUse) float64 {
		if o.list <= 0 {
			return 1
		}
		return c.Rates[o.Type] / o.list
	}
	first := 0
	if c.Type == "" {
		first = cmp.Compare(saves(a), saves(b))
	} else if c.Flexible {
		first = cmp.Compare(NormalizedSize(a.Type), NormalizedSize(b.Type))
	}
	named := func(o commitmentUse) int { return min(len(o.Name), 1) }
	return cmp.Or(first, cmp.Compare(named(a), named(b)), a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Type, b.Type), cmp.Compare(a.Zone, b.Zone))
}

// drawFrom takes what it can of the commitment, and returns what is left of that.
func (o *commitmentUse) drawFrom(c Commitment, left int64) int64 {
	each := c.Amount(o.Type, o.Zone)
	if each <= 0 || left <= 0 || o.part <= 0 {
		return left
	}
	want := int64(math.Ceil(o.part*float64(each) - 1e-6))
	if want <= left {
		o.part = 0
		return left - want
	}
	o.part -= float64(left) / float64(each)
	return 0
}

// AddCommitments adds to the types what they cost where a commitment covers them: of each offering on demand that is to
// be had, and that a commitment is large enough for, one more, which is as good as free. What the commitments have room
// for is not looked at; see Allot. Reserved Instances and Savings Plans are read for Linux and shared tenancy.
func (c Catalog) AddCommitments(types []Type) []Type {
	if len(c.Commitments) == 0 {
		return types
	}
	order := c.inOrder()
	out := slices.Clone(types)
	for i := range out {
		t := &out[i]
		if r, ok := t.Requirements.Get(LabelOS); ok && !r.Has("linux") {
			continue
		}
		var more []Offering
		for _, o := range t.Offerings {
			if o.CapacityType != OnDemand || !o.Available || o.Price <= 0 {
				continue
			}
			for _, k := range order {
				if n := k.Amount(o.Type, o.Zone); n > 0 && n <= k.Room {
					o.Paid = append(o.Paid, CommitmentDraw{k.ID, n})
				}
			}
			if len(o.Paid) > 0 {
				o.Price /= reservedDiscount
				more = append(more, o)
			}
		}
		if len(more) > 0 {
			t.Offerings = slices.Concat(more, t.Offerings)
			SortOfferings(t.Offerings)
		}
	}
	return out
}

// PaidPrice returns the price beside its commitments of an instance that would cost usd, where part of it is paid for.
func PaidPrice(usd, part float64) float64 {
	return max(usd*(1-part), usd/reservedDiscount)
}

// Limited reports whether the offering is to be had in a certain number only: what is reserved or paid for.
func (o Offering) Limited() bool { return o.Reservation != nil || len(o.Paid) > 0 }
