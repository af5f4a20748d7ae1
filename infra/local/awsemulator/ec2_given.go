package awsemulator

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// AddSubnet makes a subnet of the given id in a zone of the region, without tags, as somebody's manifest names it. It
// may be repeated.
func (c *networks) AddSubnet(id, zone string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.vpc.findSubnet(id) != nil {
		return nil
	}
	beside := c.vpc.inZone(zone)
	if beside == nil {
		return fmt.Errorf("add subnet %s: there is no zone %s", id, zone)
	}
	const first = 4 // subnets of the network as it is laid out, one in each zone
	n := len(c.vpc.subnets) - first
	cidr, err := netip.ParsePrefix(fmt.Sprintf("10.1.%d.0/24", n))
	if err != nil {
		return fmt.Errorf("add subnet %s: there are %d already", id, n)
	}
	c.vpc.subnets = append(c.vpc.subnets, &subnet{ID: id, Zone: zone, ZoneID: beside.ZoneID, CIDR: cidr,
		Tags: map[string]string{},
		used: map[netip.Addr]bool{}, next: cidr.Addr().Next().Next().Next().Next(), most: 1<<8 - 5})
	return nil
}

// AddSecurityGroup makes a security group of the given id, without tags. It may be repeated.
func (c *networks) AddSecurityGroup(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.vpc.findGroup(id) == nil {
		c.vpc.groups = append(c.vpc.groups, &group{ID: id, Name: id, About: "named by a manifest",
			Tags: map[string]string{}})
	}
}

// AddImage makes an image of the given id, of this account. The architecture is x86_64 or arm64. It may be repeated.
func (c *amis) AddImage(id, name, arch string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, found := c.findImage(id); found {
		return
	}
	now := time.Now()
	c.images = append(c.images, image{ID: id, Name: name, Arch: arch, Owner: c.opt.Account, Root: "/dev/xvda",
		Created: now, Deprecated: now.AddDate(2, 0, 0), Tags: map[string]string{}})
	slices.SortFunc(c.images, func(a, b image) int { return strings.Compare(a.ID, b.ID) })
}
