package awsemulator

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
)

// capacity are EC2's capacity reservations and placement groups.
type capacity struct {
	*account
	reservations map[string]*reservation // by id
	groups       []PlacementGroup
}

// What a fleet asks for that is to come out of reservations of a special kind, and the markets of such reservations.
const (
	targetBlock         = "capacity-block"
	targetReserved      = "reserved-capacity"
	marketInterruptible = "interruptible-capacity-reservation"

	reservationsOnly = "capacity-reservations-only"
)

// Reservation is a capacity reservation of the account.
type Reservation struct {
	ID            string // made up when empty
	Type, Zone    string
	Count         int
	Open          bool      // any matching instance may use it, else only one that names it
	Block         bool      // a capacity block
	Interruptible bool      // may be taken back
	Ends          time.Time // zero: when it is cancelled
	Tags          map[string]string
}

type reservation struct {
	Reservation
	state string // active, cancelled or expired
	made  time.Time
}

// ReserveCapacity adds a capacity reservation, or replaces one of that ID, and returns its ID.
func (c *capacity) ReserveCapacity(r Reservation) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.ID = cmp.Or(r.ID, newID("cr"))
	r.Tags = maps.Clone(r.Tags)
	c.reservations[r.ID] = &reservation{Reservation: r, state: "active", made: time.Now()}
	return r.ID
}

// CancelReservation gives the capacity back. Instances in a block or an interruptible reservation end; others go on as
// on-demand.
func (c *capacity) CancelReservation(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.reservations[id]
	if r == nil {
		return
	}
	r.state = "cancelled"
	for _, m := range c.instances.inOrder() {
		switch {
		case m.Reservation != id:
		case r.marketType() != "":
			c.instances.endInstance(m, "Server.CapacityReservationEnded")
		default:
			m.Reservation = ""
		}
	}
}

// remainingInstances is how many instances it has room for, of all that there are. The account is locked.
func (r *reservation) remainingInstances(all map[string]*machine) int {
	if r == nil || r.state != "active" {
		return 0
	}
	n := r.Count
	for _, m := range all {
		if m.Reservation == r.ID && m.isLiving() && m.State != "shutting-down" {
			n--
		}
	}
	return max(0, n)
}

// marketType is what a template must say to be launched into it.
func (r *reservation) marketType() string {
	switch {
	case r.Interruptible:
		return marketInterruptible
	case r.Block:
		return targetBlock
	}
	return ""
}

// resolveReservation finds the reservation that a pool must be taken from, for a fleet with that target. The account is
// locked.
func (c *capacity) resolveReservation(p *pool, target string) *wire.Failure {
	wanted := map[string]string{targetBlock: targetBlock, targetReserved: marketInterruptible}[target]
	o := p.data.Reservation
	if o == nil || o.Target == nil || o.Target.ID == "" {
		switch {
		case wanted != "":
			return wire.Fail(400, "InvalidFleetConfig",
				"A target capacity type of %s needs a capacity reservation in the launch template", target)
		case o != nil && o.Preference == reservationsOnly:
			return wire.Fail(400, "InsufficientInstanceCapacity", "No open capacity reservation matches")
		}
		return nil
	}
	r := c.reservations[o.Target.ID]
	market := ""
	if p.data.Market != nil {
		market = p.data.Market.MarketType
	}
	switch {
	case r == nil || r.state != "active":
		return wire.Fail(400, "InvalidCapacityReservationId.NotFound",
			"The capacity reservation ID '%s' does not exist", o.Target.ID)
	case r.Type != p.kind || r.Zone != p.zone:
		return wire.Fail(400, "InvalidParameterCombination", "The capacity reservation %s is for %s in %s", r.ID,
			r.Type, r.Zone)
	case target == spot || market != r.marketType() || wanted != r.marketType():
		return wire.Fail(400, "InvalidParameterCombination",
			"The capacity reservation %s is of market '%s', the launch template says '%s', the fleet '%s'",
			r.ID, r.marketType(), market, target)
	}
	p.reservation = r.ID
	return nil
}

// openReservation is one that an instance of the pool gets into unasked. The account is locked.
func (c *capacity) openReservation(p pool) string {
	if o := p.data.Reservation; o != nil && o.Preference != "" && o.Preference != "open" {
		return ""
	}
	for _, id := range slices.Sorted(maps.Keys(c.reservations)) {
		if r := c.reservations[id]; r.Open && r.marketType() == "" && r.Type == p.kind && r.Zone == p.zone &&
			r.remainingInstances(c.instances.machines) > 0 {
			return id
		}
	}
	return ""
}

type describeReservationsInput struct {
	page
	Filter                []filter
	CapacityReservationID []string `query:"CapacityReservationId"`
}

type xmlCapacity struct {
	ID            string     `xml:"capacityReservationId"`
	Owner         string     `xml:"ownerId"`
	Type          string     `xml:"instanceType"`
	Platform      string     `xml:"instancePlatform"`
	Zone          string     `xml:"availabilityZone"`
	Tenancy       string     `xml:"tenancy"`
	Total         int        `xml:"totalInstanceCount"`
	Free          int        `xml:"availableInstanceCount"`
	State         string     `xml:"state"`
	Start         wire.Time  `xml:"startDate"`
	End           *wire.Time `xml:"endDate"`
	EndType       string     `xml:"endDateType"`
	Match         string     `xml:"instanceMatchCriteria"`
	Created       wire.Time  `xml:"createDate"`
	Kind          string     `xml:"reservationType"`
	Interruptible bool       `xml:"interruptible"`
	Tags          []xmlTag   `xml:"tagSet>item"`
}

// xmlCapacity renders a reservation. The account is locked.
func (c *capacity) xmlCapacity(r *reservation) xmlCapacity {
	out := xmlCapacity{ID: r.ID, Owner: c.opt.Account, Type: r.Type, Platform: "Linux/UNIX", Zone: r.Zone,
		Tenancy: "default",
		Total:   r.Count, Free: r.remainingInstances(c.instances.machines), State: r.state,
		Start:   wire.Time{Time: r.made},
		EndType: "unlimited",
		Match:   "targeted",
		Created: wire.Time{Time: r.made}, Kind: "default", Interruptible: r.Interruptible, Tags: xmlTags(r.Tags)}
	if r.Open {
		out.Match = "open"
	}
	if r.Block {
		out.Kind = targetBlock
	}
	if !r.Ends.IsZero() {
		out.End, out.EndType = &wire.Time{Time: r.Ends}, "limited"
	}
	return out
}

// describeCapacityReservations is all or nothing: one unknown id and nothing is told.
func (c *capacity) describeCapacityReservations(_ *call, in *describeReservationsInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(in.CapacityReservationID) > 0 && in.MaxResults > 0 {
		return nil, wire.Fail(400, "InvalidParameterCombination",
			"The parameter CapacityReservationIds cannot be used with the parameter MaxResults")
	}
	for _, id := range in.CapacityReservationID {
		if c.reservations[id] == nil {
			return nil, notFound("InvalidCapacityReservationId.NotFound", "capacity reservation ID", id)
		}
	}
	attribute := func(x xmlCapacity, tags map[string]string) attribute {
		return func(name string) ([]string, bool) {
			v, known := map[string]string{"state": x.State, "instance-match-criteria": x.Match, "owner-id": x.Owner,
				"instance-type":     x.Type,
				"availability-zone": x.Zone, "tenancy": x.Tenancy}[name]
			if known {
				return []string{v}, true
			}
			return tagAttribute(tags, name)
		}
	}
	if err := knownFilters(in.Filter, attribute(xmlCapacity{}, nil)); err != nil {
		return nil, err
	}
	var all []xmlCapacity
	for _, r := range c.reservations {
		x := c.xmlCapacity(r)
		ok, err := matchesFilters(in.Filter, attribute(x, r.Tags))
		if err != nil {
			return nil, err
		}
		if ok && oneOf(in.CapacityReservationID, r.ID) {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b xmlCapacity) int { return strings.Compare(a.ID, b.ID) })
	var out struct {
		Set  []xmlCapacity `xml:"capacityReservationSet>item"`
		Next string        `xml:"nextToken,omitempty"`
	}
	var err error
	out.Set, out.Next, err = cutPage(all, in.page, 1000, func(x xmlCapacity) string { return x.ID })
	return out, err
}
