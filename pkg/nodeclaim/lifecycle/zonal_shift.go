package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
)

// tellShiftEvery is the shortest time between two events that an instance stays because of a zonal shift.
const tellShiftEvery = time.Hour

// shiftedZones are the zones, by name, with the ids that ARC shifts traffic away from, as far as a class or a claim
// names them. Nodes write their labels themselves.
func shiftedZones(s cluster.Snapshot) map[string]string {
	if s.Shifts == nil || len(s.Shifts.ZoneIDs) == 0 {
		return nil
	}
	away := map[string]string{}
	note := func(zone, id string) {
		if zone != "" && slices.Contains(s.Shifts.ZoneIDs, id) {
			away[zone] = id
		}
	}
	for _, c := range s.Classes {
		for zone, id := range c.ZoneIDs {
			note(zone, id)
		}
	}
	for _, c := range s.Claims {
		note(c.Labels[instancetypes.LabelZone], c.Labels[instancetypes.LabelZoneID])
	}
	return away
}

// isShifted reports whether traffic is shifted away from the instance's zone. EC2 is then not asked to change the
// instance: calls about a zone that fails are repeated by everybody at once.
func (x index) isShifted(i cluster.Instance) bool {
	_, away := x.away[i.Zone]
	return away
}

// tellKept says that an instance of the claim is not terminated while its zone is shifted away from.
func (f finalizer) tellKept(c cluster.Claim, instance, zone string) plan.Action {
	return plan.Action{Do: plan.Tell, Claim: c.Name, Warning: true, Reason: v1.ReasonZonalShiftActive,
		Every: tellShiftEvery,
		Why: fmt.Sprintf("instance %s is in zonally shifted availability zone %s (%s), skipping termination",
			instance, zone, f.away[zone])}
}

// announceShifts tells pools that a zone of theirs is shifted away from, and that it is theirs again. What was told is
// noted on the pool after it was told.
func (x index) announceShifts() (out []plan.Action) {
	if x.s.Shifts == nil {
		return nil
	}
	for _, p := range x.s.Pools {
		zones := x.zonesOf(p)
		var told []string
		for _, id := range x.s.Shifts.ZoneIDs {
			zone, affected := zones[id]
			if !affected {
				continue
			}
			told = append(told, id)
			if !slices.Contains(p.ToldShifts, id) {
				out = append(out, plan.Action{Do: plan.Tell, Pool: p.Name, Warning: true,
					Reason: v1.ReasonZonalShiftActive,
					Why:    fmt.Sprintf("Zonal shift detected: offerings in zone %s (%s) are unavailable for this NodePool", zone, id)})
			}
		}
		for _, id := range p.ToldShifts {
			if zone, affected := zones[id]; affected && !slices.Contains(x.s.Shifts.ZoneIDs, id) {
				out = append(out, plan.Action{Do: plan.Tell, Pool: p.Name, Reason: v1.ReasonZonalShiftCleared,
					Why: fmt.Sprintf("Zonal shift cleared: offerings in zone %s (%s) are restored for this NodePool", zone, id)})
			}
		}
		if !slices.Equal(told, p.ToldShifts) {
			out = append(out, plan.Action{Do: plan.NoteShifts, Pool: p.Name, Zones: told})
		}
	}
	return out
}

// zonesOf are the zones that the pool may launch in, by id: those with a subnet of its class that its requirements
// allow.
func (x index) zonesOf(p cluster.Pool) map[string]string {
	class, _ := x.s.ClassOf(p.Class)
	out := map[string]string{}
	for _, zone := range slices.Sorted(maps.Keys(class.ZoneIDs)) {
		id := class.ZoneIDs[zone]
		if p.Requirements.Has(instancetypes.LabelZone, zone) && p.Requirements.Has(instancetypes.LabelZoneID, id) {
			out[id] = zone
		}
	}
	return out
}
