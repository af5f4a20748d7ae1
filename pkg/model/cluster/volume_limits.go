package cluster

import (
	"slices"
	"strings"

	"joiner.sh/pkg/model/instancetypes"
)

// VolumeLimits holds the number of volumes that the CSI drivers of nodes attach, as the nodes say. A node says it of
// itself, and one that lies must not take the volumes of others' pods from all nodes of its type. What it says of them
// counts as far as another node, or EC2, bears it out.
type VolumeLimits struct {
	byType map[string]map[string][]int64 // by instance type and driver, least first: what its nodes say
	all    map[string][]int64            // by driver, least first
	toldTo int64                         // EBS volumes that no node exceeds, 0 unless drivers are told to attach few
	free   map[string]bool               // StorageClasses with free volumes on nodes, as RequiredVolume names them
}

// ReadVolumeLimits reads what the nodes say.
func ReadVolumeLimits(hosts []StateNode) VolumeLimits {
	v := VolumeLimits{byType: map[string]map[string][]int64{}, all: map[string][]int64{}, free: map[string]bool{}}
	for _, node := range hosts {
		if node.Node == nil {
			continue
		}
		name := node.OfferingKey().Type
		for driver, limit := range node.Node.VolumeLimits {
			if strings.HasPrefix(driver, requiredVolume) { // what others left there says nothing of new nodes
				v.free[driver] = true
				continue
			}
			if limit <= 0 { // something is wrong there, and says nothing of other nodes
				continue
			}
			if v.byType[name] == nil {
				v.byType[name] = map[string][]int64{}
			}
			v.byType[name][driver] = append(v.byType[name][driver], limit)
			v.all[driver] = append(v.all[driver], limit)
		}
	}
	for _, limits := range v.all {
		slices.Sort(limits)
	}
	for _, of := range v.byType {
		for _, limits := range of {
			slices.Sort(limits)
		}
	}
	return v
}

// Limits reports whether any node says that the driver attaches only so many volumes, or has so many free ones.
func (v VolumeLimits) Limits(driver string) bool { return len(v.all[driver]) > 0 || v.free[driver] }

// LoweredFrom returns the limits beside what EC2 says of instance types, 0 for a type of which it says nothing. A
// driver that is told to attach few is told so on all nodes, so that a new one of another type attaches few too: two
// nodes or more say less than half of what EC2 says of their types, and none says more.
func (v VolumeLimits) LoweredFrom(ebs func(instanceType string) int64) VolumeLimits {
	v.toldTo = 0
	nodes, most := 0, int64(0)
	for name, of := range v.byType {
		limits, offered := of[instancetypes.DriverEBS], int64(0)
		if len(limits) > 0 {
			offered = ebs(name)
		}
		if offered == 0 {
			continue
		}
		last := limits[len(limits)-1]
		if last >= offered/2 {
			return v
		}
		nodes, most = nodes+len(limits), max(most, last)
	}
	if nodes > 1 {
		v.toldTo = most
	}
	return v
}

// ExpectedOn returns how many volumes a new node of the type is expected to attach, by driver, for only its own driver
// will tell: what nodes of the type say, else what EC2 says of the type, which is 0 where it says nothing, unless all
// drivers are told to attach fewer, else as many as any node attaches. Drivers that are not named have no limit.
func (v VolumeLimits) ExpectedOn(instanceType string, ebs int64) map[string]int64 {
	out := map[string]int64{}
	for driver, limits := range v.all {
		out[driver] = limits[len(limits)-1]
	}
	if ebs > 0 {
		out[instancetypes.DriverEBS] = ebs
		if v.toldTo > 0 {
			out[instancetypes.DriverEBS] = min(ebs, v.toldTo)
		}
	}
	for driver, limits := range v.byType[instanceType] {
		told := int64(0)
		if driver == instancetypes.DriverEBS {
			told = ebs
		}
		out[driver] = v.borneOut(driver, limits, told)
	}
	return out
}

// borneOut returns the least that nodes of a type say, unless it is less than half of what the next of them says. Of a
// type with one node the next is what EC2 says, else any node, unless another node attaches as few.
func (v VolumeLimits) borneOut(driver string, limits []int64, ebs int64) int64 {
	least, next, all := limits[0], int64(0), v.all[driver]
	switch {
	case len(limits) > 1:
		next = limits[1]
	case len(all) > 1 && all[1] <= least:
	case ebs > 0:
		next = ebs
	case len(all) > 1:
		next = all[1]
	}
	if least < next/2 {
		return next
	}
	return least
}
