package awsemulator

import (
	"cmp"
	"errors"
	"slices"

	"joiner.sh/infra/local/awsemulator/wire"
)

// pool is one place a fleet may take instances from: a launch template with one override applied.
type pool struct {
	choice               xmlChoice
	kind, zone, subnet   string
	image, arch, profile string
	templateName         string
	groups               []string
	tags                 map[string]string
	data                 templateData
	// as policies see them: those of a fleet's template, else of the request alone
	metadata    *metadataOptions
	price       float64
	reservation string // that it must be taken from
	group       PlacementGroup
	broken      *wire.Failure // why nothing can come from it
}

// resolvePools resolves the templates and overrides of a fleet request, in the order to try them. An unknown template
// fails the call; what is wrong with one override only breaks its pool. The account is locked.
func (c *fleets) resolvePools(in *createFleetInput) ([]pool, error) {
	var out []pool
	capacityType := in.capacityType()
	for _, config := range in.LaunchTemplateConfigs {
		t, err := c.templates.findTemplate(config.Template.ID, config.Template.Name)
		if err != nil {
			return nil, err
		}
		if !oneVersion(config.Template.Version) {
			return nil, wire.Fail(400, "InvalidLaunchTemplateId.VersionNotFound",
				"Could not find launch template version %s", config.Template.Version)
		}
		overrides := config.Overrides
		if len(overrides) == 0 {
			overrides = []fleetOverride{{}}
		}
		tags := tagsFor("instance", t.data.Specifications, in.Specifications)
		tags["aws:ec2launchtemplate:id"], tags["aws:ec2launchtemplate:version"] = t.id, "1"
		for _, o := range overrides {
			p := pool{
				choice: xmlChoice{fleetTemplate{t.id, t.name, "1"}, o}, templateName: t.name, tags: tags, data: t.data,
				metadata: t.data.Metadata,
				kind:     cmp.Or(o.InstanceType, t.data.InstanceType), image: cmp.Or(o.ImageID, t.data.ImageID),
			}
			p.choice.Override.InstanceType = p.kind
			if p.kind == "" {
				return nil, wire.Fail(400, "InvalidFleetConfig",
					"No instance type in the launch template %s or its override", t.name)
			}
			switch p.broken = c.resolvePool(&p, o, capacityType); {
			case p.broken != nil && p.broken.Code == "Unsupported": // in the answer of a fleet
				p.broken = wire.Fail(400, "InvalidFleetConfiguration", "%s", p.broken.Message)
			case p.broken == nil:
				p.broken = c.capacity.resolveReservation(&p, in.TargetCapacity.DefaultTargetCapacityType)
			}
			if p.zone == "" {
				p.zone = o.AvailabilityZone
			}
			p.choice.Override.AvailabilityZone = p.zone
			out = append(out, p)
		}
	}
	if err := refuseDuplicates(out); err != nil {
		return nil, err
	}
	orderPools(out, in.launchOptions().AllocationStrategy)
	return out, nil
}

// refuseDuplicates fails where two pools are of one instance type and zone, in whatever subnets:
// github-aws-runners/terraform-aws-github-runner#5297.
func refuseDuplicates(pools []pool) error {
	named := map[[2]string]bool{}
	for _, p := range pools {
		at := [2]string{p.kind, p.zone}
		if named[at] {
			return wire.Fail(400, "InvalidFleetConfig", "The fleet configuration contains duplicate instance pools.")
		}
		named[at] = true
	}
	return nil
}

// resolvePool finds what a pool needs, in the order in which EC2 would complain. The account is locked.
func (c *fleets) resolvePool(p *pool, o fleetOverride, capacityType string) *wire.Failure {
	if capacityType != spot && len(tagsFor("spot-instances-request", p.data.Specifications)) > 0 {
		return wire.Fail(400, "InvalidParameterValue", "You cannot specify tags for Spot instances requests if there are no Spot instances requests being created by the request.")
	}
	if f := c.resolveSubnet(p, o); f != nil {
		return f
	}
	t := c.offerings.byName[p.kind]
	if t == nil {
		return wire.Fail(400, "InvalidParameterValue", "Invalid value '%s' for InstanceType.", p.kind)
	}
	var sold bool
	if p.price, sold = c.offerings.hourlyPrice(capacityType, p.kind, p.zone); !sold {
		return wire.Fail(400, "Unsupported", "Your requested instance type (%s) is not supported in your requested Availability Zone (%s).", p.kind, p.zone)
	}
	if most, ok := parsePrice(o.MaxPrice); ok && capacityType == spot && most < p.price {
		return wire.Fail(400, "SpotMaxPriceTooLow",
			"Your Spot request price of %s is lower than the minimum required Spot request fulfillment price of %g.",
			o.MaxPrice, p.price)
	}
	if f := c.resolveImage(p, t); f != nil {
		return f
	}
	if f := checkInterfaces(t, p.data.Interfaces); f != nil {
		return f
	}
	if f := c.capacity.resolveGroup(p, t); f != nil {
		return f
	}
	if f := c.resolveProfile(p); f != nil {
		return f
	}
	return c.resolveGroups(p)
}

func (c *fleets) resolveSubnet(p *pool, o fleetOverride) *wire.Failure {
	id := o.SubnetID
	if id == "" && len(p.data.Interfaces) > 0 {
		id = p.data.Interfaces[0].SubnetID
	}
	zone := o.AvailabilityZone
	if zone == "" && p.data.Placement != nil {
		zone = p.data.Placement.AvailabilityZone
	}
	var s *subnet
	switch {
	case id != "":
		if s = c.networks.vpc.findSubnet(id); s == nil {
			return wire.Fail(400, "InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
		}
		if zone != "" && zone != s.Zone {
			return wire.Fail(400, "InvalidParameterCombination", "The subnet %s is not in the Availability Zone %s", id,
				zone)
		}
	case zone != "":
		if s = c.networks.vpc.inZone(zone); s == nil {
			return wire.Fail(400, "InvalidParameterValue", "Invalid availability zone: [%s]", zone)
		}
	default:
		return wire.Fail(400, "MissingInput", "No subnets found for the default VPC; the override names no subnet")
	}
	p.subnet, p.zone = s.ID, s.Zone
	return nil
}

func (c *fleets) resolveImage(p *pool, t *InstanceType) *wire.Failure {
	if p.image == "" {
		return wire.Fail(400, "MissingParameter", "The request must contain the parameter ImageId")
	}
	i, ok := c.amis.findImage(p.image)
	if !ok {
		return wire.Fail(400, "InvalidAMIID.NotFound", "The image id '[%s]' does not exist", p.image)
	}
	p.arch = i.Arch
	if !slices.Contains(ec2Architectures(t), i.Arch) {
		return wire.Fail(400, "InvalidParameterValue",
			"The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI. Specify an instance type and an AMI that have matching architectures, and try again.", ec2Architectures(t)[0], i.Arch)
	}
	return nil
}

func (c *fleets) resolveProfile(p *pool) *wire.Failure {
	if p.data.Profile == nil {
		return nil
	}
	for name, known := range c.iam.profiles {
		if name == p.data.Profile.Name || p.data.Profile.Name == "" && known.ARN == p.data.Profile.ARN {
			p.profile = name
			return nil
		}
	}
	return wire.Fail(400, "InvalidParameterValue",
		"Value (%s) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
		cmp.Or(p.data.Profile.Name, p.data.Profile.ARN))
}

func (c *fleets) resolveGroups(p *pool) *wire.Failure {
	wanted := slices.Concat(p.data.Groups, p.data.GroupNames)
	for _, n := range p.data.Interfaces {
		wanted = append(wanted, n.Groups...)
	}
	if len(wanted) == 0 {
		wanted = []string{"default"}
	}
	for _, id := range wanted {
		g := c.networks.vpc.findGroup(id)
		if g == nil {
			return wire.Fail(400, "InvalidGroup.NotFound", "The security group '%s' does not exist", id)
		}
		if !slices.Contains(p.groups, g.ID) {
			p.groups = append(p.groups, g.ID)
		}
	}
	slices.Sort(p.groups)
	return nil
}

type runInstancesInput struct {
	templateData
	MinCount, MaxCount int
	ClientToken        string
	SubnetID           string        `query:"SubnetId"`
	LaunchTemplate     fleetTemplate `query:"LaunchTemplate"`
}

// mergeTemplate lays the parameters of a RunInstances call over those of its template.
func (in *runInstancesInput) mergeTemplate(base templateData) templateData {
	over := in.templateData
	base.ImageID = cmp.Or(over.ImageID, base.ImageID)
	base.InstanceType = cmp.Or(over.InstanceType, base.InstanceType)
	base.UserData = cmp.Or(over.UserData, base.UserData)
	base.Profile = cmp.Or(over.Profile, base.Profile)
	base.Metadata = cmp.Or(over.Metadata, base.Metadata)
	base.Placement = cmp.Or(over.Placement, base.Placement)
	base.Market = cmp.Or(over.Market, base.Market)
	if over.Interfaces != nil {
		base.Interfaces = over.Interfaces
	}
	if over.Groups != nil {
		base.Groups = over.Groups
	}
	if over.Devices != nil {
		base.Devices = over.Devices
	}
	base.Specifications = slices.Concat(base.Specifications, over.Specifications)
	return base
}

// runInstances launches from one pool. A client token works as for CreateFleet.
func (c *fleets) runInstances(r *call, in *runInstancesInput) (any, error) {
	if in.MinCount < 1 || in.MaxCount < in.MinCount {
		return nil, wire.Fail(400, "InvalidParameterValue", "Value (%d) for parameter minCount is invalid", in.MinCount)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := pool{data: in.templateData, metadata: in.Metadata}
	if in.LaunchTemplate != (fleetTemplate{}) {
		t, err := c.templates.findTemplate(in.LaunchTemplate.ID, in.LaunchTemplate.Name)
		if err != nil {
			return nil, err
		}
		p.data, p.templateName = in.mergeTemplate(t.data), t.name
	}
	if f, bad := errors.AsType[*wire.Failure](checkUserData(p.data.UserData)); bad {
		return nil, wire.Fail(400, "InvalidParameterValue", "%s", f.Message)
	}
	parameters := fingerprintForm(r.form)
	if before, ok := c.tokens["RunInstances/"+in.ClientToken]; ok && in.ClientToken != "" {
		if before.parameters != parameters {
			return nil, wire.Fail(400, "IdempotentParameterMismatch",
				"The client token you have provided is associated with a resource that has different parameters.")
		}
		return before.reply, nil
	}
	capacityType := onDemand
	if p.data.Market != nil && p.data.Market.MarketType == spot {
		capacityType = spot
	}
	p.kind, p.image, p.tags = p.data.InstanceType, p.data.ImageID, tagsFor("instance", p.data.Specifications)
	if f := c.resolvePool(&p, fleetOverride{SubnetID: in.SubnetID}, capacityType); f != nil {
		return nil, f
	}
	if f := c.capacity.resolveReservation(&p, capacityType); f != nil {
		return nil, f
	}
	if f := c.ec2Access.mayLaunch(r, c.ec2Access.launchAccess(p, capacityType), map[string]*wire.Failure{}); f != nil {
		return nil, f
	}
	if err := r.endDryRun(); err != nil {
		return nil, err
	}
	room, failure := c.poolRoom(p, capacityType, nil)
	if room < in.MinCount {
		failure.Status = 500 // RunInstances says "no capacity" with a server's status
		return nil, failure
	}
	reply := xmlReservation{ID: newID("r"), Owner: c.opt.Account}
	for range min(room, in.MaxCount) {
		m := c.instances.addInstance(p, launchRequest{capacityType: capacityType, token: in.ClientToken})
		reply.Instances = append(reply.Instances, c.instances.xmlInstance(m))
	}
	if in.ClientToken != "" {
		c.tokens["RunInstances/"+in.ClientToken] = fleetAnswer{parameters, reply}
	}
	return reply, nil
}
