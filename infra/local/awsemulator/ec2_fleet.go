package awsemulator

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"joiner.sh/infra/local/awsemulator/wire"
)

// fleets is the part of EC2 that launches: CreateFleet and RunInstances, from pools of capacity.
type fleets struct {
	*account
	tokens map[string]fleetAnswer
}

type createFleetInput struct {
	ClientToken, Type, Context string
	LaunchTemplateConfigs      []fleetConfig
	TargetCapacity             fleetTarget        `query:"TargetCapacitySpecification"`
	Spot                       fleetOptions       `query:"SpotOptions"`
	OnDemand                   fleetOptions       `query:"OnDemandOptions"`
	Reserved                   fleetReserved      `query:"ReservedCapacityOptions"`
	Specifications             []tagSpecification `query:"TagSpecification"`
	Excess                     string             `query:"ExcessCapacityTerminationPolicy"`
}

type fleetConfig struct {
	Template  fleetTemplate   `query:"LaunchTemplateSpecification"`
	Overrides []fleetOverride `query:"Overrides"`
}

type fleetTemplate struct {
	ID      string `query:"LaunchTemplateId" xml:"launchTemplateId,omitempty"`
	Name    string `query:"LaunchTemplateName" xml:"launchTemplateName,omitempty"`
	Version string `xml:"version,omitempty"`
}

type fleetOverride struct {
	InstanceType     string   `xml:"instanceType,omitempty"`
	MaxPrice         string   `xml:"maxPrice,omitempty"`
	SubnetID         string   `query:"SubnetId" xml:"subnetId,omitempty"`
	AvailabilityZone string   `xml:"availabilityZone,omitempty"`
	WeightedCapacity *float64 `xml:"weightedCapacity"`
	Priority         *float64 `xml:"priority"`
	ImageID          string   `query:"ImageId" xml:"imageId,omitempty"`
}

type fleetTarget struct {
	TotalTargetCapacity, OnDemandTargetCapacity, SpotTargetCapacity int
	DefaultTargetCapacityType                                       string
}

type fleetOptions struct {
	AllocationStrategy           string
	InstanceInterruptionBehavior string
	MaxTotalPrice                string
	MinTargetCapacity            int
	SingleInstanceType           bool
	SingleAvailabilityZone       bool
}

type fleetReserved struct {
	ReservationTypes []string `query:"ReservationType"`
}

type xmlChoice struct {
	Template fleetTemplate `xml:"launchTemplateSpecification"`
	Override fleetOverride `xml:"overrides"`
}

type xmlFleetError struct {
	Choice    xmlChoice `xml:"launchTemplateAndOverrides"`
	Lifecycle string    `xml:"lifecycle"`
	Code      string    `xml:"errorCode"`
	Message   string    `xml:"errorMessage"`
}

type xmlFleetInstances struct {
	Choice    xmlChoice `xml:"launchTemplateAndOverrides"`
	Lifecycle string    `xml:"lifecycle"`
	IDs       []string  `xml:"instanceIds>item"`
	Type      string    `xml:"instanceType"`
	Zone      string    `xml:"availabilityZone"`
	Subnet    string    `xml:"subnetId,omitempty"`
}

type xmlFleet struct {
	ID        string              `xml:"fleetId"`
	Errors    []xmlFleetError     `xml:"errorSet>item"`
	Instances []xmlFleetInstances `xml:"fleetInstanceSet>item"`
}

// fleetAnswer is what a client token stands for: the parameters it came with and what was answered.
type fleetAnswer struct {
	parameters string
	reply      any
}

// launchRequest is what a launch asks for, whatever the pool it comes from.
type launchRequest struct {
	capacityType, fleet, token string
	want                       int
}

// createFleet launches instances now (type instant). It is all one step under the account's lock, so the same
// token gives the same answer even to calls that overlap.
func (c *fleets) createFleet(r *call, in *createFleetInput) (any, error) {
	if err := in.validateInput(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	parameters := fingerprintForm(r.form)
	if in.ClientToken != "" {
		if before, ok := c.tokens["CreateFleet/"+in.ClientToken]; ok {
			if before.parameters != parameters {
				return nil, wire.Fail(400, "IdempotentParameterMismatch",
					"The client token you have provided is associated with a resource that has different parameters.")
			}
			return before.reply, nil
		}
	}
	pools, err := c.resolvePools(in)
	if err != nil {
		return nil, err
	}
	asked := map[string]*wire.Failure{}
	for i, p := range pools {
		if p.broken == nil && c.opt.Authorize != nil {
			questions := c.ec2Access.launchAccess(p, in.capacityType(), in.Specifications)
			pools[i].broken = c.ec2Access.mayLaunch(r, questions, asked)
		}
	}
	if err := r.endDryRun(); err != nil {
		return nil, err
	}
	request := launchRequest{
		capacityType: in.capacityType(), fleet: "fleet-" + hash16(newID("f")),
		token: in.ClientToken, want: in.TargetCapacity.TotalTargetCapacity,
	}
	reply := c.fillFleet(pools, request, in.launchOptions().MinTargetCapacity)
	if r.curtailed {
		reply.curtail()
	}
	if in.ClientToken != "" {
		c.tokens["CreateFleet/"+in.ClientToken] = fleetAnswer{parameters, reply}
	}
	return reply, nil
}

// fingerprintForm of the parameters of a request: two requests are the same if all but the token is.
func fingerprintForm(form url.Values) string {
	rest := url.Values{}
	for k, v := range form {
		if k != "ClientToken" {
			rest[k] = v
		}
	}
	sum := sha256.Sum256([]byte(rest.Encode()))
	return hex.EncodeToString(sum[:])
}

func (in *createFleetInput) launchOptions() fleetOptions {
	if in.TargetCapacity.DefaultTargetCapacityType == spot {
		return in.Spot
	}
	return in.OnDemand
}

// capacityType is how the fleet's instances are paid for: reserved ones are on-demand instances.
func (in *createFleetInput) capacityType() string {
	if in.TargetCapacity.DefaultTargetCapacityType == spot {
		return spot
	}
	return onDemand
}

// mostOverrides is how many overrides an instant fleet is known to take: 60 types in six zones, where EC2 refuses 100
// types (karpenter-provider-aws#5776). Nobody publishes where between the two it begins to.
const mostOverrides = 360

// validateInput refuses what real EC2 refuses, and what this account does not model.
func (in *createFleetInput) validateInput() error {
	invalid := func(format string, args ...any) error {
		return wire.Fail(400, "InvalidParameterValue", format, args...)
	}
	if in.Type != "instant" {
		return invalid("Fleet type '%s' is not modelled by the emulator, only instant", in.Type)
	}
	if len(in.LaunchTemplateConfigs) == 0 || len(in.LaunchTemplateConfigs) > 50 {
		return wire.Fail(400, "InvalidFleetConfig", "A fleet needs 1 to 50 launch template configurations")
	}
	overrides := 0
	for _, config := range in.LaunchTemplateConfigs {
		overrides += len(config.Overrides)
	}
	if overrides > mostOverrides {
		return wire.Fail(400, "InvalidInput",
			"The request failed because the payload for the body of the request is too large.")
	}
	t := in.TargetCapacity
	if t.TotalTargetCapacity < 1 {
		return invalid("TotalTargetCapacity must be at least 1")
	}
	if t.OnDemandTargetCapacity != 0 || t.SpotTargetCapacity != 0 {
		return invalid("OnDemandTargetCapacity and SpotTargetCapacity are not modelled by the emulator")
	}
	strategies := map[string][]string{
		spot: {"", "price-capacity-optimized", "capacity-optimized", "capacity-optimized-prioritized",
			"lowest-price", "diversified"},
		onDemand:    {"", "lowest-price", "prioritized"},
		targetBlock: {""}, targetReserved: {""},
	}[t.DefaultTargetCapacityType]
	if strategies == nil {
		return invalid("DefaultTargetCapacityType '%s' is not modelled by the emulator", t.DefaultTargetCapacityType)
	}
	if s := in.launchOptions().AllocationStrategy; !slices.Contains(strategies, s) {
		return invalid("AllocationStrategy '%s' is invalid for %s", s, t.DefaultTargetCapacityType)
	}
	return nil
}

// fillFleet takes instances from the pools in their order until there are enough, and notes why a pool gave none.
func (c *fleets) fillFleet(pools []pool, in launchRequest, atLeast int) xmlFleet {
	out := xmlFleet{ID: in.fleet}
	type take struct {
		pool  pool
		count int
	}
	var takes []take
	taken := map[string]int{} // by subnet and by offering, before anything is born
	have := 0
	for _, p := range pools {
		if have == in.want {
			break
		}
		room, failure := c.poolRoom(p, in.capacityType, taken)
		n := min(room, in.want-have)
		if n < in.want-have && failure != nil {
			out.Errors = append(out.Errors, xmlFleetError{p.choice, in.capacityType, failure.Code, failure.Message})
		}
		if n > 0 {
			takes = append(takes, take{p, n})
			taken[p.subnet] += n
			taken[p.kind+"/"+p.zone] += n
			taken[p.reservation] += n
			have += n
		}
	}
	if have < atLeast {
		return out // below the minimum an instant fleet launches nothing
	}
	for _, t := range takes {
		item := xmlFleetInstances{
			Choice: t.pool.choice, Lifecycle: in.capacityType, Type: t.pool.kind, Zone: t.pool.zone,
			Subnet: t.pool.subnet,
		}
		for range t.count {
			item.IDs = append(item.IDs, c.instances.addInstance(t.pool, in).ID)
		}
		out.Instances = append(out.Instances, item)
	}
	return out
}

// curtail leaves the last instance out.
func (f *xmlFleet) curtail() {
	if n := len(f.Instances); n > 0 {
		ids := &f.Instances[n-1].IDs
		*ids = (*ids)[:len(*ids)-1]
	}
}

// poolRoom says how many instances a pool can give now, and in what words it refuses more. The account is locked.
func (c *fleets) poolRoom(p pool, capacityType string, taken map[string]int) (int, *wire.Failure) {
	if p.broken != nil {
		return 0, p.broken
	}
	const unlimited = 1 << 30
	room, failure := unlimited, (*wire.Failure)(nil)
	if p.reservation != "" {
		reserved := c.capacity.reservations[p.reservation]
		room = max(0, reserved.remainingInstances(c.instances.machines)-taken[p.reservation])
		failure = wire.Fail(400, "ReservationCapacityExceeded",
			"The capacity reservation %s does not have sufficient available capacity.", p.reservation)
	} else if limit, ok := c.offerings.capacityLimit(capacityType, p.kind, p.zone); ok && limit.Limit >= 0 {
		living := 0
		for _, m := range c.instances.machines {
			if m.isLiving() && m.State != "stopped" && m.Type == p.kind && m.Zone == p.zone &&
				m.CapacityType == capacityType {
				living++
			}
		}
		room = max(0, limit.Limit-living-taken[p.kind+"/"+p.zone])
		failure = insufficientCapacity(limit.Code, p.kind, p.zone)
		if capacityType == spot && limit.Code == "" {
			failure.Message = "There is no Spot capacity available that matches your request."
		}
	}
	if p.group.Strategy == "spread" {
		if n, full := c.capacity.spreadRoom(p); n < room {
			room, failure = n, full
		}
	}
	if free := c.networks.vpc.findSubnet(p.subnet).freeAddresses() - taken[p.subnet]; free < room {
		room = max(0, free)
		failure = wire.Fail(400, "InsufficientFreeAddressesInSubnet",
			"There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.",
			p.subnet)
	}
	return room, failure
}

// insufficientCapacity is the refusal of an offering that is unavailable; the code is EC2's usual one if it is empty.
func insufficientCapacity(code, kind, zone string) *wire.Failure {
	return wire.Fail(400, cmp.Or(code, "InsufficientInstanceCapacity"),
		"We currently do not have sufficient %s capacity in the Availability Zone you requested (%s). Our system will be working on provisioning additional capacity.", kind, zone)
}

// orderPools sorts pools as the allocation strategy wants them tried. Pools that cannot work come in their places too,
// since each is reported. Equal pools keep the order of the request.
func orderPools(pools []pool, strategy string) {
	byPriority := func(a, b pool) int { return cmp.Compare(a.launchPriority(), b.launchPriority()) }
	byPrice := func(a, b pool) int { return cmp.Compare(a.price, b.price) }
	switch strategy {
	case "prioritized", "capacity-optimized-prioritized":
		slices.SortStableFunc(pools, byPriority)
	default:
		slices.SortStableFunc(pools, byPrice)
	}
}

// launchPriority of a pool: the lower number is tried first, a pool without one last.
func (p pool) launchPriority() float64 {
	if p.choice.Override.Priority == nil {
		return 1e18
	}
	return *p.choice.Override.Priority
}

func parsePrice(text string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return v, err == nil
}
