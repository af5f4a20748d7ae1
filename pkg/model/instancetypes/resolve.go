package instancetypes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/requirements"
)

// ResolveTypes tells what the instance types of c are for nodes of class at the time now: labels, capacity,
// allocatable, image and offerings, sorted by name. Types that no node can have are left out: other than hvm on amd64
// or arm64, and a1 under AL2023. A type that the class cannot use stays, with every offering unavailable and the reason
// in Why.
func ResolveTypes(c Catalog, class Class, unavailable []UnavailableOffering, now time.Time) []Type {
	r := newResolver(c, class, unavailable, now)
	out := make([]Type, 0, len(c.Types))
	for i := range c.Types {
		f := &c.Types[i]
		arch, ok := r.isUsable(f)
		if !ok {
			continue
		}
		out = append(out, r.resolveType(f, arch))
	}
	slices.SortFunc(out, func(a, b Type) int { return strings.Compare(a.Name, b.Name) })
	return LowerToObserved(out, class.Observed)
}

// ValidUntil returns the time when Resolve begins to tell something else, though the same is asked; zero for never.
func ValidUntil(class Class, unavailable []UnavailableOffering, now time.Time) (next time.Time) {
	add := func(t time.Time) {
		if t.After(now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, u := range unavailable {
		add(u.Until)
	}
	for _, r := range class.Reservations {
		if !r.Ends.IsZero() {
			add(r.Ends)
			add(r.Ends.Add(-blockNotice))
		}
	}
	return next
}

// DefaultClass is the class that a plain EC2NodeClass gives: AL2023, a subnet in every zone, a 20 GiB root volume, and
// one image that every type can run. It is for planning without a cluster.
func DefaultClass(c Catalog) Class {
	return Class{
		Name: "default", Ready: true, Family: AL2023, ZoneIDs: c.Zones, MemoryOverhead: 0.075,
		Images: []Image{{ID: "ami-default"}}, Disks: FamilyDisks(AL2023),
	}
}

// typeResolver holds what is the same for all types.
type typeResolver struct {
	class       Class
	region      string
	scope       string // of entries about the class
	zones       []classZone
	unavailable unavailableIndex
	now         time.Time
	limits      kubeletLimits
	why         string // why no type of the class can be used

	booked map[string][]*Reservation // of the class, by instance type

	list  []requirements.Requirement // of the last type, as they were found
	keys  []string                   // theirs
	order []int                      // of them by key
}

// classZone is a zone of the region as the class sees it.
type classZone struct {
	name, id  string
	hasSubnet bool
	notSold   string // reasons, made once
	noSubnet  string
	full      string // why no subnet of the class takes another node there, empty when one does
}

func newResolver(c Catalog, class Class, unavailable []UnavailableOffering, now time.Time) *typeResolver {
	unavailable = slices.DeleteFunc(slices.Clone(unavailable), func(u UnavailableOffering) bool {
		return u.LeavesOut() && (u.Scope != ClassScope(class.Name) || u.Cause != class.CauseOf(u.Type))
	})
	r := &typeResolver{class: class, region: c.Region, scope: ClassScope(class.Name),
		unavailable: indexUnavailable(unavailable, now),
		now:         now}
	for _, name := range zoneNames(c) {
		id, ok := class.ZoneIDs[name]
		if id == "" {
			id = c.Zones[name]
		}
		r.zones = append(r.zones, classZone{
			name: name, id: id, hasSubnet: ok,
			notSold: "not sold in " + name, noSubnet: "the class has no subnet in " + name, full: r.fullReason(name),
		})
	}
	for i := range class.Reservations {
		if r.booked == nil {
			r.booked = map[string][]*Reservation{}
		}
		res := class.Reservations[i] // a copy: the caller may go on with its own
		r.booked[res.Type] = append(r.booked[res.Type], &res)
	}
	var err error
	if r.limits, err = newLimits(class); err != nil {
		r.why = err.Error()
	} else {
		r.why = r.unavailable[unavailableKey{scope: r.scope}]
	}
	return r
}

// fullReason says why none of the class's subnets in the zone takes another node, which needs an address of its own.
// Where the subnets are not known, one does.
func (r *typeResolver) fullReason(zone string) (why string) {
	for _, s := range r.class.Subnets {
		if s.Zone != zone {
			continue
		}
		marked := r.unavailable[unavailableKey{scope: s.ID}]
		switch {
		case marked != "":
			why = s.ID + " is " + marked
		case s.Free != nil && *s.Free <= 0:
			why = "no subnet of the class in " + zone + " has a free address"
		default:
			return ""
		}
	}
	return why
}

// zoneNames lists the zones of the region, sorted: those with an id and those that sell something.
func zoneNames(c Catalog) []string {
	seen := make(map[string]bool, len(c.Zones))
	var names []string
	add := func(z string) {
		if !seen[z] {
			seen[z] = true
			names = append(names, z)
		}
	}
	for z := range c.Zones {
		add(z)
	}
	for i := range c.Types {
		for _, z := range c.Types[i].Zones {
			add(z)
		}
	}
	slices.Sort(names)
	return names
}

// isUsable returns the architecture of the type, and whether a node of the class can have the type at all.
func (r *typeResolver) isUsable(f *Facts) (string, bool) {
	if !slices.Contains(f.Virtualization, "hvm") {
		return "", false
	}
	if r.class.Family == AL2023 && strings.HasPrefix(f.Name, "a1.") {
		return "", false // AL2023 needs a newer ARM core
	}
	for _, a := range f.Arch {
		if a == "amd64" || a == "arm64" {
			return a, true
		}
	}
	return "", false
}

func (r *typeResolver) resolveType(f *Facts, arch string) Type {
	reqs := r.typeRequirements(f, arch)
	t := Type{
		Name: f.Name, Requirements: reqs, ImageID: r.imageFor(reqs), EFADevices: f.efaDevices(),
		EBSVolumes: f.ebsVolumes(int64(len(r.class.Interfaces)), int64(len(r.class.Disks))),
		PartOfGPU:  slices.ContainsFunc(f.GPUs, func(g Accelerator) bool { return g.Part }),
	}
	why := r.addAmounts(&t, f, arch)
	t.Offerings = r.listOfferings(f, cmp.Or(r.refusalReason(f, t.ImageID), why))
	return t
}

// imageFor returns the first image of the class that the type can run, empty when there is none.
func (r *typeResolver) imageFor(reqs requirements.Set) string {
	for _, i := range r.class.Images {
		if len(reqs.Refusals(i.Requirements, nil)) == 0 {
			return i.ID
		}
	}
	return ""
}

// refusalReason says why the class cannot use the type in any zone, empty when it can.
func (r *typeResolver) refusalReason(f *Facts, image string) string {
	switch {
	case r.why != "":
		return r.why
	case image == "":
		return "no AMI of the class fits this type"
	case r.unavailable[unavailableKey{OfferingKey{Type: f.Name}, r.scope}] != "":
		return r.unavailable[unavailableKey{OfferingKey{Type: f.Name}, r.scope}]
	case r.class.NitroOnly && f.Hypervisor != "nitro":
		return "connectionTracking needs the Nitro hypervisor"
	case r.class.Prefixes && f.Hypervisor == "xen":
		return "ipPrefixCount needs the Nitro hypervisor"
	case r.class.IPv6 && f.Hypervisor == "xen":
		return "pods of a cluster of IPv6 need the Nitro hypervisor"
	case r.class.Placement != nil && !slices.Contains(f.PlacementStrategies, r.class.Placement.Strategy):
		return "it is not known to go into placement groups of strategy " +
			cmp.Or(r.class.Placement.Strategy, "unknown")
	case r.class.NestedVirtualization && !f.NestedVirtualization:
		return "it is not known to do nested virtualization, which cpuOptions asks for"
	}
	return r.refuseInterfaces(f)
}

// refuseInterfaces says why the type cannot have the network interfaces of the class.
func (r *typeResolver) refuseInterfaces(f *Facts) string {
	if len(r.class.Interfaces) == 0 {
		return ""
	}
	cards := f.CardENIs
	if len(cards) == 0 {
		cards = []int64{f.DefaultCardENIs} // what is known without asking EC2
	}
	if f.NoENA {
		return "networkInterfaces needs a type with ENA"
	}
	for _, i := range r.class.Interfaces {
		switch {
		case i.Card >= int64(len(cards)):
			return fmt.Sprintf("the class uses network card %d, this type has %d", i.Card, len(cards))
		case i.Device >= cards[i.Card]:
			return fmt.Sprintf("the class uses device %d of network card %d, which takes %d", i.Device, i.Card,
				cards[i.Card])
		}
	}
	if r.efaOnly(allCards) > f.MaxEFAs {
		return "the class asks for more EFA interfaces than this type has"
	}
	return ""
}

// allCards stands for every network card.
const allCards = -1

// efaOnly counts the interfaces of the class on that card that have no addresses.
func (r *typeResolver) efaOnly(card int64) (n int64) {
	for _, i := range r.class.Interfaces {
		if i.EFAOnly && (card == allCards || i.Card == card) {
			n++
		}
	}
	return n
}
