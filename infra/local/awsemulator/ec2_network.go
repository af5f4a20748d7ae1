package awsemulator

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"joiner.sh/infra/local/awsemulator/wire"
)

// networks is the VPC with its subnets, groups, routes and endpoints.
type networks struct {
	*account
	vpc       network
	endpoints []vpcEndpoint
	// zones that services offering endpoints in, by service; of a service that is missing all
	endpointZones map[string][]string
	routes        []Route // of every subnet; nil: a NAT gateway
}

// network is the one VPC of the account.
type network struct {
	id      string
	subnets []*subnet
	groups  []*group
	zones   []zone
	publics uint32 // public addresses that were given out
}

type zone struct{ name, id string }

type subnet struct {
	ID, Zone, ZoneID string
	CIDR             netip.Prefix
	Tags             map[string]string
	used             map[netip.Addr]bool
	next             netip.Addr
	most             int // addresses to hand out
}

type group struct {
	ID, Name, About string
	Tags            map[string]string
}

// newNetwork lays out one /18 for each zone; the subnets and the node group carry the discovery tag.
func newNetwork(o Options, zoneIDs map[string]string) network {
	n := network{id: "vpc-0" + hash16("vpc")}
	discovery := func(name string) map[string]string {
		return map[string]string{"karpenter.sh/discovery": o.ClusterName, "Name": o.ClusterName + "-" + name}
	}
	offerings := &offerings{zoneIDs: zoneIDs}
	for i, name := range offerings.zoneNames() {
		n.zones = append(n.zones, zone{name, zoneIDs[name]})
		cidr := netip.MustParsePrefix(fmt.Sprintf("10.0.%d.0/18", 64*i))
		n.subnets = append(n.subnets, &subnet{
			ID: "subnet-0" + hash16(name), Zone: name, ZoneID: zoneIDs[name], CIDR: cidr,
			Tags: discovery("private-" + name), used: map[netip.Addr]bool{},
			next: cidr.Addr().Next().Next().Next().Next(), most: 1<<14 - 5, // EC2 keeps four and the last
		})
	}
	n.groups = []*group{
		{ID: "sg-0" + hash16("default"), Name: "default", About: "default VPC security group",
			Tags: map[string]string{}},
		{ID: "sg-0" + hash16("node"), Name: o.ClusterName + "-node", About: "nodes", Tags: discovery("node")},
		{
			ID: "sg-0" + hash16("cluster"), Name: "eks-cluster-sg-" + o.ClusterName, About: "control plane",
			Tags: map[string]string{"aws:eks:cluster-name": o.ClusterName, "kubernetes.io/cluster/" +
				o.ClusterName: "owned"},
		},
	}
	return n
}

func (n *network) findSubnet(id string) *subnet {
	i := slices.IndexFunc(n.subnets, func(s *subnet) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return n.subnets[i]
}

func (n *network) inZone(zone string) *subnet {
	i := slices.IndexFunc(n.subnets, func(s *subnet) bool { return s.Zone == zone })
	if i < 0 {
		return nil
	}
	return n.subnets[i]
}

// findGroup finds a security group by id or by name.
func (n *network) findGroup(idOrName string) *group {
	i := slices.IndexFunc(n.groups, func(g *group) bool { return g.ID == idOrName || g.Name == idOrName })
	if i < 0 {
		return nil
	}
	return n.groups[i]
}

func (s *subnet) freeAddresses() int { return max(0, s.most-len(s.used)) }

// takeAddress hands out the next address that is free, from the one after the last: one that was just given back waits,
// so that no node has the name of the one before. Callers have checked that there is one.
func (s *subnet) takeAddress() (out netip.Addr) {
	for s.used[s.next] {
		s.next = s.addressAfter(s.next)
	}
	out = s.next
	s.used[out], s.next = true, s.addressAfter(out)
	return out
}

// addressAfter is the address behind another; the first that instances may have behind the last.
func (s *subnet) addressAfter(a netip.Addr) netip.Addr {
	if next := a.Next(); s.CIDR.Contains(next.Next()) {
		return next
	}
	return s.CIDR.Addr().Next().Next().Next().Next()
}

// publicAddress is a public address for the instance that no instance had before; empty where its template does not
// ask for one. No subnet gives public addresses by itself.
func (n *network) publicAddress(m *machine) string {
	if !slices.ContainsFunc(m.template.Interfaces, func(i networkInterface) bool {
		return i.AssociatePublicIPAddress != nil && *i.AssociatePublicIPAddress
	}) {
		return ""
	}
	n.publics++
	return netip.AddrFrom4([4]byte{198, 18, byte(n.publics >> 8), byte(n.publics)}).String()
}

// LimitAddresses makes a subnet hold at most n instances; false if there is no such subnet.
func (c *networks) LimitAddresses(subnetID string, n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.vpc.findSubnet(subnetID)
	if s == nil {
		return false
	}
	s.most = n
	return true
}

// TagSubnet sets a tag of a subnet, as its owner would; false if there is no such subnet.
func (c *networks) TagSubnet(subnetID, key, value string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.vpc.findSubnet(subnetID)
	if s == nil {
		return false
	}
	s.Tags[key] = value
	return true
}

type xmlPublic struct {
	IP    string `xml:"publicIp"`
	Owner string `xml:"ipOwnerId"`
}

type xmlZone struct {
	Name   string `xml:"zoneName"`
	ID     string `xml:"zoneId"`
	State  string `xml:"zoneState"`
	Region string `xml:"regionName"`
	OptIn  string `xml:"optInStatus"`
	Type   string `xml:"zoneType"`
	Group  string `xml:"groupName"`
	Border string `xml:"networkBorderGroup"`
}

type describeZonesInput struct {
	Filter               []filter
	ZoneName             []string
	ZoneID               []string `query:"ZoneId"`
	AllAvailabilityZones bool
}

func (c *networks) describeAvailabilityZones(_ *call, in *describeZonesInput) (any, error) {
	var out struct {
		Zones []xmlZone `xml:"availabilityZoneInfo>item"`
	}
	for _, wanted := range in.ZoneName {
		if c.vpc.inZone(wanted) == nil {
			return nil, wire.Fail(400, "InvalidParameterValue", "Invalid availability zone: [%s]", wanted)
		}
	}
	for _, z := range c.vpc.zones {
		ok, err := matchesFilters(in.Filter, func(name string) ([]string, bool) {
			v, known := map[string]string{
				"zone-name": z.name, "zone-id": z.id, "state": "available", "region-name": c.opt.Region,
				"zone-type": "availability-zone", "opt-in-status": "opt-in-not-required",
			}[name]
			return []string{v}, known
		})
		if err != nil {
			return nil, err
		}
		if !ok || !oneOf(in.ZoneName, z.name) || !oneOf(in.ZoneID, z.id) {
			continue
		}
		out.Zones = append(out.Zones, xmlZone{
			Name: z.name, ID: z.id, State: "available", Region: c.opt.Region, OptIn: "opt-in-not-required",
			Type: "availability-zone", Group: c.opt.Region + "-zg-1", Border: c.opt.Region,
		})
	}
	return out, nil
}

// oneOf says whether v is among the wanted; nothing wanted means everything is.
func oneOf(wanted []string, v string) bool { return len(wanted) == 0 || slices.Contains(wanted, v) }

type xmlSubnet struct {
	ID        string   `xml:"subnetId"`
	ARN       string   `xml:"subnetArn"`
	State     string   `xml:"state"`
	VPC       string   `xml:"vpcId"`
	CIDR      string   `xml:"cidrBlock"`
	Free      int      `xml:"availableIpAddressCount"`
	Zone      string   `xml:"availabilityZone"`
	ZoneID    string   `xml:"availabilityZoneId"`
	Owner     string   `xml:"ownerId"`
	Default   bool     `xml:"defaultForAz"`
	PublicIPs bool     `xml:"mapPublicIpOnLaunch"`
	Tags      []xmlTag `xml:"tagSet>item"`
}

type describeSubnetsInput struct {
	page
	Filter   []filter
	SubnetID []string `query:"SubnetId"`
}

func (c *networks) describeSubnets(_ *call, in *describeSubnetsInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range in.SubnetID {
		if c.vpc.findSubnet(id) == nil {
			return nil, wire.Fail(400, "InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
		}
	}
	var all []xmlSubnet
	for _, s := range c.vpc.subnets {
		ok, err := matchesFilters(in.Filter, func(name string) ([]string, bool) { return c.subnetAttribute(s, name) })
		if err != nil {
			return nil, err
		}
		if ok && oneOf(in.SubnetID, s.ID) {
			all = append(all, xmlSubnet{
				ID: s.ID, State: "available", VPC: c.vpc.id, CIDR: s.CIDR.String(),
				Free: s.freeAddresses(), Zone: s.Zone,
				ARN:    "arn:aws:ec2:" + c.opt.Region + ":" + c.opt.Account + ":subnet/" + s.ID,
				ZoneID: s.ZoneID, Owner: c.opt.Account, Tags: xmlTags(s.Tags),
			})
		}
	}
	slices.SortFunc(all, func(a, b xmlSubnet) int { return strings.Compare(a.ID, b.ID) })
	var out struct {
		Subnets []xmlSubnet `xml:"subnetSet>item"`
		Next    string      `xml:"nextToken,omitempty"`
	}
	var err error
	out.Subnets, out.Next, err = cutPage(all, in.page, 1000, func(s xmlSubnet) string { return s.ID })
	return out, err
}

func (c *networks) subnetAttribute(s *subnet, name string) ([]string, bool) {
	switch name {
	case "subnet-id":
		return []string{s.ID}, true
	case "vpc-id":
		return []string{c.vpc.id}, true
	case "availability-zone", "availabilityZone":
		return []string{s.Zone}, true
	case "availability-zone-id":
		return []string{s.ZoneID}, true
	case "state":
		return []string{"available"}, true
	case "available-ip-address-count":
		return []string{strconv.Itoa(s.freeAddresses())}, true
	case "cidr-block", "cidr":
		return []string{s.CIDR.String()}, true
	}
	return tagAttribute(s.Tags, name)
}

type xmlGroup struct {
	Owner string   `xml:"ownerId"`
	ID    string   `xml:"groupId"`
	Name  string   `xml:"groupName"`
	About string   `xml:"groupDescription"`
	VPC   string   `xml:"vpcId"`
	Tags  []xmlTag `xml:"tagSet>item"`
}

type describeGroupsInput struct {
	page
	Filter    []filter
	GroupID   []string `query:"GroupId"`
	GroupName []string
}

func (c *networks) describeSecurityGroups(_ *call, in *describeGroupsInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range slices.Concat(in.GroupID, in.GroupName) {
		if c.vpc.findGroup(id) == nil {
			return nil, wire.Fail(400, "InvalidGroup.NotFound", "The security group '%s' does not exist", id)
		}
	}
	var all []xmlGroup
	for _, g := range c.vpc.groups {
		ok, err := matchesFilters(in.Filter, func(name string) ([]string, bool) {
			v, known := map[string]string{
				"group-id": g.ID, "group-name": g.Name, "vpc-id": c.vpc.id, "description": g.About,
				"owner-id": c.opt.Account,
			}[name]
			if known {
				return []string{v}, true
			}
			return tagAttribute(g.Tags, name)
		})
		if err != nil {
			return nil, err
		}
		if ok && oneOf(in.GroupID, g.ID) && oneOf(in.GroupName, g.Name) {
			all = append(all, xmlGroup{c.opt.Account, g.ID, g.Name, g.About, c.vpc.id, xmlTags(g.Tags)})
		}
	}
	slices.SortFunc(all, func(a, b xmlGroup) int { return strings.Compare(a.ID, b.ID) })
	var out struct {
		Groups []xmlGroup `xml:"securityGroupInfo>item"`
		Next   string     `xml:"nextToken,omitempty"`
	}
	var err error
	out.Groups, out.Next, err = cutPage(all, in.page, 1000, func(g xmlGroup) string { return g.ID })
	return out, err
}

// NameNetwork gives the VPC and the first of its subnets these ids.
func NameNetwork(c *Cloud, vpc string, subnets ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vpc.id = vpc
	for i, id := range subnets {
		c.vpc.subnets[i].ID = id
	}
}
