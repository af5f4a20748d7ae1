package awsemulator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"joiner.sh/infra/local/awsemulator/wire"
)

type xmlReservation struct {
	ID        string        `xml:"reservationId"`
	Owner     string        `xml:"ownerId"`
	Instances []xmlInstance `xml:"instancesSet>item"`
}

type xmlState struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

func stateOf(name string) xmlState {
	return xmlState{map[string]int{"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64,
		"stopped": 80}[name], name}
}

type xmlGroupRef struct {
	ID   string `xml:"groupId"`
	Name string `xml:"groupName"`
}

type xmlProfile struct {
	ARN string `xml:"arn"`
	ID  string `xml:"id"`
}

type xmlPlacement struct {
	Zone    string `xml:"availabilityZone"`
	ZoneID  string `xml:"availabilityZoneId"`
	Group   string `xml:"groupName"`
	Tenancy string `xml:"tenancy"`
	Number  int    `xml:"partitionNumber,omitempty"`
}

type xmlReason struct {
	Code    string `xml:"code"`
	Message string `xml:"message"`
}

type xmlInterface struct {
	ID     string        `xml:"networkInterfaceId"`
	Subnet string        `xml:"subnetId"`
	VPC    string        `xml:"vpcId"`
	IP     string        `xml:"privateIpAddress"`
	DNS    string        `xml:"privateDnsName"`
	Public *xmlPublic    `xml:"association"`
	Status string        `xml:"status"`
	Type   string        `xml:"interfaceType"`
	Groups []xmlGroupRef `xml:"groupSet>item"`
}

type xmlInstance struct {
	ID          string           `xml:"instanceId"`
	Image       string           `xml:"imageId"`
	State       xmlState         `xml:"instanceState"`
	DNS         string           `xml:"privateDnsName"`
	Type        string           `xml:"instanceType"`
	Launched    wire.Time        `xml:"launchTime"`
	Placement   xmlPlacement     `xml:"placement"`
	Monitoring  string           `xml:"monitoring>state"`
	Subnet      string           `xml:"subnetId,omitempty"`
	VPC         string           `xml:"vpcId,omitempty"`
	IP          string           `xml:"privateIpAddress,omitempty"`
	PublicIP    string           `xml:"ipAddress,omitempty"`
	Reason      *xmlReason       `xml:"stateReason"`
	Arch        string           `xml:"architecture"`
	RootType    string           `xml:"rootDeviceType"`
	Root        string           `xml:"rootDeviceName"`
	Lifecycle   string           `xml:"instanceLifecycle,omitempty"`
	SpotRequest string           `xml:"spotInstanceRequestId,omitempty"`
	Token       string           `xml:"clientToken"`
	Tags        []xmlTag         `xml:"tagSet>item"`
	Hypervisor  string           `xml:"hypervisor"`
	Interfaces  []xmlInterface   `xml:"networkInterfaceSet>item"`
	Groups      []xmlGroupRef    `xml:"groupSet>item"`
	Profile     *xmlProfile      `xml:"iamInstanceProfile"`
	Metadata    *metadataOptions `xml:"metadataOptions"`
	ENA         bool             `xml:"enaSupport"`
	Platform    string           `xml:"platformDetails"`

	Reservation string              `xml:"capacityReservationId,omitempty"`
	Booking     *reservationOptions `xml:"capacityReservationSpecification"`
}

// xmlInstance renders an instance; a terminated one has lost its network. The account is locked.
func (c *instances) xmlInstance(m *machine) xmlInstance {
	out := xmlInstance{
		ID: m.ID, Image: m.ImageID, State: stateOf(m.State), Type: m.Type, Launched: wire.Time{Time: m.Launched},
		Placement: xmlPlacement{Zone: m.Zone, ZoneID: m.ZoneID, Tenancy: "default"}, Monitoring: "disabled",
		Arch: m.Arch, RootType: "ebs", Root: "/dev/xvda", SpotRequest: m.SpotRequestID, Token: m.ClientToken,
		Tags: xmlTags(m.Tags), Hypervisor: "xen", Metadata: m.template.Metadata, ENA: true, Platform: "Linux/UNIX",
	}
	if m.CapacityType == spot {
		out.Lifecycle = spot
	}
	out.Reservation, out.Booking = m.Reservation, m.template.Reservation
	if r := c.capacity.reservations[m.Reservation]; r != nil && r.marketType() != "" {
		out.Lifecycle = r.marketType()
	}
	out.Placement.Number = m.Partition
	if m.template.Placement != nil && m.template.Placement.Tenancy != "" {
		out.Placement.Tenancy = m.template.Placement.Tenancy
	}
	if m.template.Monitoring != nil && m.template.Monitoring.Enabled {
		out.Monitoring = "enabled"
	}
	if p := c.iam.profiles[m.Profile]; p != nil {
		out.Profile = &xmlProfile{p.ARN, p.ID}
	}
	if m.StateReason != "" {
		out.Reason = &xmlReason{m.StateReason, m.StateReason + ": " + stateMessage(m.StateReason)}
	}
	if m.State == "terminated" {
		return out
	}
	for _, id := range m.SecurityGroups {
		out.Groups = append(out.Groups, xmlGroupRef{id, c.networks.vpc.findGroup(id).Name})
	}
	out.Subnet, out.VPC, out.IP, out.DNS = m.SubnetID, c.networks.vpc.id, m.PrivateIP, m.PrivateDNSName
	out.Interfaces = []xmlInterface{{
		ID: "eni-0" + hash16(m.ID), Subnet: m.SubnetID, VPC: c.networks.vpc.id, IP: m.PrivateIP, DNS: m.PrivateDNSName,
		Status: "in-use", Type: "interface", Groups: out.Groups,
	}}
	if out.PublicIP = m.PublicIP; m.PublicIP != "" {
		out.Interfaces[0].Public = &xmlPublic{m.PublicIP, "amazon"}
	}
	return out
}

func (c *instances) instanceAttribute(m *machine, name string) ([]string, bool) {
	lifecycle := ""
	if m.CapacityType == spot {
		lifecycle = spot
	}
	v, known := map[string]string{
		"instance-id": m.ID, "instance-state-name": m.State, "instance-state-code": fmt.Sprint(stateOf(m.State).Code),
		"instance-type": m.Type, "image-id": m.ImageID, "availability-zone": m.Zone, "subnet-id": m.SubnetID,
		"vpc-id": c.networks.vpc.id, "private-dns-name": m.PrivateDNSName, "private-ip-address": m.PrivateIP,
		"instance-lifecycle": lifecycle, "spot-instance-request-id": m.SpotRequestID, "client-token": m.ClientToken,
		"architecture": m.Arch,
	}[name]
	if known {
		return []string{v}, true
	}
	switch name {
	case "instance.group-id", "network-interface.group-id":
		return m.SecurityGroups, true
	case "launch-time":
		return []string{m.Launched.UTC().Format("2006-01-02T15:04:05.000Z")}, true
	}
	return tagAttribute(m.Tags, name)
}

// inOrder returns the instances as they were launched. The account is locked.
func (c *instances) inOrder() []*machine {
	return slices.SortedFunc(maps.Values(c.machines), func(a, b *machine) int { return cmp.Compare(a.order, b.order) })
}

type describeInstancesInput struct {
	page
	Filter                  []filter
	InstanceID              []string `query:"InstanceId"`
	IncludeManagedResources bool
}

func (c *instances) describeInstances(_ *call, in *describeInstancesInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, err := c.findInstances(in.InstanceID, in.Filter, in.page)
	if err != nil {
		return nil, err
	}
	var out struct {
		Reservations []xmlReservation `xml:"reservationSet>item"`
		Next         string           `xml:"nextToken,omitempty"`
	}
	found, out.Next, err = cutPage(found, in.page, 1000, machineKey)
	for _, m := range found {
		out.Reservations = append(out.Reservations, xmlReservation{
			ID: "r-0" + hash16(m.ID), Owner: c.opt.Account, Instances: []xmlInstance{c.xmlInstance(m)},
		})
	}
	return out, err
}

func machineKey(m *machine) string { return fmt.Sprintf("%012d", m.order) }

// findInstances finds instances by id and filter, in the order of their launch. The account is locked.
func (c *instances) findInstances(ids []string, filters []filter, p page) ([]*machine, error) {
	if len(ids) > 0 && p.MaxResults > 0 {
		return nil, wire.Fail(400, "InvalidParameterCombination",
			"The parameter instancesSet cannot be used with the parameter maxResults")
	}
	var missing []string
	for _, id := range ids {
		if _, err := c.machineByID(id); err != nil {
			if !strings.HasPrefix(id, "i-") {
				return nil, err
			}
			missing = append(missing, id)
		}
	}
	switch len(missing) {
	case 0:
	case 1:
		return nil, wire.Fail(400, "InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", missing[0])
	default:
		return nil, wire.Fail(400, "InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist",
			strings.Join(missing, ", "))
	}
	if err := knownFilters(filters, func(name string) ([]string,
		bool) {
		return c.instanceAttribute(&machine{}, name)
	}); err != nil {
		return nil, err
	}
	var out []*machine
	for _, m := range c.inOrder() {
		ok, err := matchesFilters(filters, func(name string) ([]string, bool) { return c.instanceAttribute(m, name) })
		if err != nil {
			return nil, err
		}
		if ok && oneOf(ids, m.ID) {
			out = append(out, m)
		}
	}
	return out, nil
}

type terminateInput struct {
	InstanceID []string `query:"InstanceId"`
	Force      bool
}

type xmlStateChange struct {
	ID       string   `xml:"instanceId"`
	Current  xmlState `xml:"currentState"`
	Previous xmlState `xml:"previousState"`
}

// terminateInstances ends all or none of a zone: one unknown id and none is terminated, one protected instance and none
// of its zone. Repeating it is harmless.
func (c *instances) terminateInstances(r *call, in *terminateInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(in.InstanceID) == 0 {
		return nil, wire.Fail(400, "MissingParameter", "The request must contain the parameter InstanceId")
	}
	if _, err := c.findInstances(in.InstanceID, nil, page{}); err != nil {
		return nil, err
	}
	if err := r.endDryRun(); err != nil {
		return nil, err
	}
	var out struct {
		Changes []xmlStateChange `xml:"instancesSet>item"`
	}
	spared, failure := c.endProtected(in.InstanceID)
	for _, id := range in.InstanceID {
		m := c.machines[id]
		if spared[m.Zone] {
			continue
		}
		before := stateOf(m.State)
		c.endInstance(m, "Client.UserInitiatedShutdown")
		out.Changes = append(out.Changes, xmlStateChange{id, stateOf(m.State), before})
	}
	return out, failure
}

type describeStatusInput struct {
	page
	Filter                  []filter
	InstanceID              []string `query:"InstanceId"`
	IncludeAllInstances     bool
	IncludeManagedResources bool
}

type xmlCheck struct {
	Status  string           `xml:"status"`
	Details []xmlCheckDetail `xml:"details>item"`
}

type xmlCheckDetail struct {
	Name   string    `xml:"name"`
	Status string    `xml:"status"`
	Since  wire.Time `xml:"impairedSince"`
}
