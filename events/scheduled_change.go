package events

import (
	"fmt"
	"strings"
)

// ScheduledChange is AWS Health's announcement that EC2 will reboot, stop, retire or otherwise disturb instances. One
// event has many pages, each page is an event of its own; a copy may come from a backup region.
type ScheduledChange = Event[ScheduledChangeDetail]

// ScheduledChangeDetail names a planned change and its instances.
type ScheduledChangeDetail struct {
	Service string `json:"service"` // EC2
	// such as AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED
	EventTypeCode     string `json:"eventTypeCode"`
	EventTypeCategory string `json:"eventTypeCategory"` // scheduledChange
	StatusCode        string `json:"statusCode"`        // upcoming, open or closed
	StartTime         When   `json:"startTime"`
	// the region that is affected; the envelope's is the one of the delivery
	EventRegion      string           `json:"eventRegion"`
	AffectedEntities []AffectedEntity `json:"affectedEntities"`
}

// AffectedEntity names one thing: an instance, as an id or an ARN, or something else such as a dedicated host.
type AffectedEntity struct {
	Value  string `json:"entityValue"`
	Status string `json:"status"` // IMPAIRED, PENDING, UNKNOWN, UNIMPAIRED or RESOLVED; empty in older events
}

// isSettled reports whether nothing is to come for the entity any more, while the event goes on for others.
func (e AffectedEntity) isSettled() bool {
	return strings.EqualFold(e.Status, "RESOLVED") || strings.EqualFold(e.Status, "UNIMPAIRED")
}

// AffectedInstances are the ids of the instances that are affected, in the order of the event. An entity is an id or
// the ARN of one. What is no instance is left out, and so is an instance for which nothing is to come any more.
func (d ScheduledChangeDetail) AffectedInstances() []string {
	var out []string
	for _, e := range d.AffectedEntities {
		if id := e.Value[strings.LastIndexByte(e.Value, '/')+1:]; isInstanceID(id) && !e.isSettled() {
			out = append(out, id)
		}
	}
	return out
}

// DecodeScheduledChange reads the event. An error means that the event is malformed or of another kind, other
// announcements of AWS Health included: it will not get better when it is tried again.
func DecodeScheduledChange(data []byte) (ScheduledChange, error) {
	e, err := decodeEvent[ScheduledChangeDetail](data, "aws.health", "AWS Health Event")
	if err != nil {
		return e, err
	}
	if e.Detail.Service != "EC2" || e.Detail.EventTypeCategory != "scheduledChange" {
		return e, fmt.Errorf("decode event %q: it is about %q of %q, not a scheduledChange of EC2", e.ID,
			e.Detail.EventTypeCategory, e.Detail.Service)
	}
	return e, nil
}
