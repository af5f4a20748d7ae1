package awsemulator

import (
	"slices"
	"strings"

	"joiner.sh/infra/local/awsemulator/wire"
)

// PlacementGroup is a placement group of the account.
type PlacementGroup struct {
	ID, Name   string
	Strategy   string // cluster, partition or spread
	Partitions int
}

// spreadMost is how many instances a spread group takes in a zone.
const spreadMost = 7

// PutPlacementGroup adds a placement group.
func (c *capacity) PutPlacementGroup(g PlacementGroup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups = append(c.groups, g)
}

// resolveGroup checks the placement group that a pool is to be launched into. The account is locked.
func (c *capacity) resolveGroup(p *pool, t *InstanceType) *wire.Failure {
	if p.data.Placement == nil || p.data.Placement.GroupID+p.data.Placement.GroupName == "" {
		return nil
	}
	i := slices.IndexFunc(c.groups, func(g PlacementGroup) bool {
		return g.ID == p.data.Placement.GroupID || g.Name == p.data.Placement.GroupName
	})
	switch {
	case i < 0:
		return wire.Fail(400, "InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown",
			p.data.Placement.GroupID+p.data.Placement.GroupName)
	case !slices.Contains(t.PlacementStrategies, c.groups[i].Strategy):
		return wire.Fail(400, "InvalidParameterCombination",
			"Instance type %s does not support placement groups of strategy %s", t.Name, c.groups[i].Strategy)
	}
	if n := p.data.Placement.PartitionNumber; n != nil && (*n < 1 || *n > c.groups[i].Partitions) {
		return wire.Fail(400, "InvalidParameterValue", "Partition %d does not exist", *n)
	}
	p.group = c.groups[i]
	return nil
}

// choosePartition is the one that the pool asks for, else one that EC2 chooses for its n-th instance; 0 for a group
// without partitions.
func (p *pool) choosePartition(n int) int {
	switch {
	case p.group.Partitions == 0:
		return 0
	case p.data.Placement.PartitionNumber != nil:
		return *p.data.Placement.PartitionNumber
	}
	return 1 + n%p.group.Partitions
}

// spreadRoom says how many more instances a pool's spread group takes in its zone. The account is locked.
func (c *capacity) spreadRoom(p pool) (room int, failure *wire.Failure) {
	room = spreadMost
	for _, m := range c.instances.machines {
		if m.Group == p.group.ID && m.Zone == p.zone && m.isLiving() {
			room--
		}
	}
	return max(0, room), wire.Fail(400, "InsufficientInstanceCapacity",
		"You have exceeded the limit of instances in this spread placement group for the Availability Zone %s", p.zone)
}

type describePlacementInput struct {
	Filter    []filter
	GroupID   []string `query:"GroupId"`
	GroupName []string
}

type xmlPlacementGroup struct {
	ID         string `xml:"groupId"`
	Name       string `xml:"groupName"`
	Strategy   string `xml:"strategy"`
	State      string `xml:"state"`
	Partitions int    `xml:"partitionCount,omitempty"`
}

// describePlacementGroups is all or nothing: one unknown id or name and nothing is told.
func (c *capacity) describePlacementGroups(_ *call, in *describePlacementInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, wanted := range slices.Concat(in.GroupID, in.GroupName) {
		if !slices.ContainsFunc(c.groups, func(g PlacementGroup) bool { return g.ID == wanted || g.Name == wanted }) {
			return nil, wire.Fail(400, "InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown", wanted)
		}
	}
	attribute := func(g PlacementGroup) attribute {
		return func(name string) ([]string, bool) {
			v, known := map[string]string{"state": "available", "strategy": g.Strategy, "group-name": g.Name,
				"group-arn": "", "spread-level": ""}[name]
			if known {
				return []string{v}, true
			}
			return tagAttribute(nil, name)
		}
	}
	if err := knownFilters(in.Filter, attribute(PlacementGroup{})); err != nil {
		return nil, err
	}
	var out struct {
		Set []xmlPlacementGroup `xml:"placementGroupSet>item"`
	}
	for _, g := range c.groups {
		ok, err := matchesFilters(in.Filter, attribute(g))
		if err != nil {
			return nil, err
		}
		if ok && oneOf(in.GroupID, g.ID) && oneOf(in.GroupName, g.Name) {
			out.Set = append(out.Set, xmlPlacementGroup{g.ID, g.Name, g.Strategy, "available", g.Partitions})
		}
	}
	slices.SortFunc(out.Set, func(a, b xmlPlacementGroup) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}
