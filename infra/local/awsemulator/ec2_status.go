package awsemulator

import (
	"cmp"
	"slices"
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
)

func checkOf(impairedSince time.Time) xmlCheck {
	if impairedSince.IsZero() {
		return xmlCheck{"ok", []xmlCheckDetail{{Name: "reachability", Status: "passed"}}}
	}
	return xmlCheck{"impaired", []xmlCheckDetail{{"reachability", "failed", wire.Time{Time: impairedSince}}}}
}

type xmlStatusEvent struct {
	ID    string    `xml:"instanceEventId"`
	Code  string    `xml:"code"`
	About string    `xml:"description"`
	From  wire.Time `xml:"notBefore"`
}

type xmlStatus struct {
	ID       string           `xml:"instanceId"`
	Zone     string           `xml:"availabilityZone"`
	State    xmlState         `xml:"instanceState"`
	System   xmlCheck         `xml:"systemStatus"`
	Instance xmlCheck         `xml:"instanceStatus"`
	Events   []xmlStatusEvent `xml:"eventsSet>item"`
}

// maxStatusIDs is how many instances one DescribeInstanceStatus may name.
const maxStatusIDs = 100

// describeInstanceStatus tells of running instances only, unless all are asked for.
func (c *instances) describeInstanceStatus(_ *call, in *describeStatusInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var status, rest []filter
	for _, f := range in.Filter {
		if _, known := statusAttribute(&machine{}, f.Name); known {
			status = append(status, f)
		} else {
			rest = append(rest, f)
		}
	}
	if len(in.InstanceID) > maxStatusIDs {
		return nil, wire.Fail(400, "InvalidParameterValue", "The maximum number of instance IDs is %d", maxStatusIDs)
	}
	found, err := c.findInstances(in.InstanceID, rest, in.page)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(m *machine) bool {
		of := func(name string) ([]string, bool) { return statusAttribute(m, name) }
		ok, _ := matchesFilters(status, of) // all are known
		return !ok || m.State != "running" && !in.IncludeAllInstances
	})
	var out struct {
		Statuses []xmlStatus `xml:"instanceStatusSet>item"`
		Next     string      `xml:"nextToken,omitempty"`
	}
	found, out.Next, err = cutPage(found, in.page, 1000, machineKey)
	for _, m := range found {
		s := xmlStatus{
			ID: m.ID, Zone: m.Zone, State: stateOf(m.State),
			System: checkOf(m.health.system), Instance: checkOf(m.health.instance),
		}
		for _, e := range m.health.events {
			s.Events = append(s.Events, xmlStatusEvent{e.id, e.code, e.about, wire.Time{Time: e.notBefore}})
		}
		out.Statuses = append(out.Statuses, s)
	}
	return out, err
}

func statusAttribute(m *machine, name string) ([]string, bool) {
	switch name {
	case "instance-status.status":
		return []string{checkOf(m.health.instance).Status}, true
	case "system-status.status":
		return []string{checkOf(m.health.system).Status}, true
	}
	of := map[string]func(e statusEvent) string{
		"event.code":              func(e statusEvent) string { return e.code },
		"event.description":       func(e statusEvent) string { return e.about },
		"event.instance-event-id": func(e statusEvent) string { return e.id },
		"event.not-before": func(e statusEvent) string {
			return e.notBefore.UTC().Format("2006-01-02T15:04:05.000Z")
		},
	}[name]
	if of == nil {
		return nil, false
	}
	var values []string
	for _, e := range m.health.events {
		values = append(values, of(e))
	}
	return values, true
}

// stateMessage is what EC2 says behind the code of a reason.
func stateMessage(code string) string {
	known := map[string]string{
		"Client.InternalError":           "Client error on launch",
		"Client.UserInitiatedShutdown":   "User initiated shutdown",
		"Server.SpotInstanceTermination": "Instance terminated because of a spot interruption",
		"Server.InternalError":           "Internal error on launch",
	}
	return cmp.Or(known[code], "the instance was terminated")
}
