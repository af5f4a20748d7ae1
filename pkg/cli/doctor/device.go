package doctor

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/findings"
)

// devices names the DRA drivers of the cluster and says what Joiner does with their devices.
func (e *examination) devices() {
	const check = "DRA"
	for _, d := range e.f.Devices.Drivers {
		var serves, names, unknown []string
		for _, c := range e.f.Devices.Classes {
			if c.Driver != d.Name || c.Unread != "" {
				continue
			}
			serves, names = append(serves, c.Resource), append(names, c.Name)
			if c.CountedBy == "" && strings.HasPrefix(c.Resource, resourcev1.ResourceDeviceClassPrefix) {
				unknown = append(unknown, c.Name)
			}
		}
		what := fmt.Sprintf("driver %s publishes %s", d.Name, published(d))
		if len(serves) == 0 {
			e.Add(findings.Warning, check, what+", and no DeviceClass that Joiner can read selects them: pods that claim them get no node",
				`make a DeviceClass with the selector device.driver == "`+d.Name+`"`)
			continue
		}
		slices.Sort(serves)
		what = fmt.Sprintf("%s; those that DeviceClass %s selects count as %s of their nodes", what,
			strings.Join(names, ", "), strings.Join(slices.Compact(serves), ", "))
		if len(unknown) == 0 {
			e.Add(findings.Fine, check, what, "")
			continue
		}
		e.Add(findings.Warning, check, fmt.Sprintf("%s. How many devices of DeviceClass %s an instance type has is not known: "+
			"no node is made for pods that claim them", what, strings.Join(unknown, ", ")),
			"say it by a NodeOverlay with capacity "+serves[0])
	}
	for _, c := range e.f.Devices.Classes {
		if c.Unread != "" {
			e.Add(findings.Warning, check, fmt.Sprintf(
				"DeviceClass %s serves %s, and Joiner cannot count its devices: %s. Nodes that lack the resource are kept, and are not replaced by choice", c.Name, c.Resource, c.Unread),
				`write its selector as device.driver == "NAME" && device.attributes["DOMAIN"].ATTRIBUTE == VALUE`)
		}
	}
	e.lateNodes(check)
}

// lateNodes names nodes that wait for devices.
func (e *examination) lateNodes(check string) {
	late := e.f.Devices.Late
	if more := len(late) - mostLoose; more > 0 {
		late = late[:mostLoose]
		defer e.Add(findings.Broken, check, fmt.Sprintf("%d more nodes wait for devices", more), "mend the driver first")
	}
	for _, n := range late {
		e.Add(findings.Broken, check, fmt.Sprintf("node %s has waited %d minutes for devices of %s%s%s", n.Name, n.Minutes,
			strings.Join(n.Drivers, ", "), e.unfinishedBy(n), strings.TrimRight(": "+n.Why, ": ")),
			"look at the driver's pod there: kubectl get pods -A --field-selector spec.nodeName="+n.Name+
				", and kubectl get resourceslices --field-selector spec.nodeName="+n.Name)
	}
}

// unfinishedBy names the drivers that published some of their ResourceSlices of the node, and not all.
func (e *examination) unfinishedBy(n LateNode) string {
	var some []string
	for _, d := range e.f.Devices.Drivers {
		if slices.Contains(n.Drivers, d.Name) && slices.Contains(d.Incomplete, n.Name) {
			some = append(some, d.Name)
		}
	}
	if len(some) == 0 {
		return ""
	}
	return "; " + strings.Join(some, ", ") + " has published only some of its ResourceSlices there"
}

// published says how many devices a driver publishes, and where.
func published(d cluster.DeviceDriver) string {
	if d.Nodes == 0 {
		return fmt.Sprintf("%d devices that are no single node's", d.Devices)
	}
	return fmt.Sprintf("%d devices, on %d nodes", d.Devices, d.Nodes)
}
