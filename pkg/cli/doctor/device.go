package doctor

import (
	"fmt"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/findings"
)

// devices names the DRA drivers of the cluster and says what Joiner does with their devices.
func (e *examination) devices() {
	const check = "DRA"
	for _, d := range e.f.Devices.Drivers {
		var serves, names []string
		for _, c := range e.f.Devices.Classes {
			if c.Driver == d.Name && c.Unread == "" {
				serves, names = append(serves, c.Resource), append(names, c.Name)
			}
		}
		what := fmt.Sprintf("driver %s publishes %s", d.Name, published(d))
		if len(serves) == 0 {
			e.Add(findings.Warning, check, what+", and no DeviceClass serves them as an extended resource: Joiner makes no nodes for pods that ask for them by ResourceClaims",
				"kubectl patch deviceclass CLASS --type merge -p '{\"spec\":{\"extendedResourceName\":\"RESOURCE\"}}' (Kubernetes 1.36 or later), and have pods request the resource")
			continue
		}
		slices.Sort(serves)
		e.Add(findings.Fine, check, fmt.Sprintf("%s; those that DeviceClass %s selects count as %s of their nodes", what,
			strings.Join(names, ", "), strings.Join(slices.Compact(serves), ", ")), "")
	}
	for _, c := range e.f.Devices.Classes {
		if c.Unread != "" {
			e.Add(findings.Warning, check, fmt.Sprintf(
				"DeviceClass %s serves %s, and Joiner cannot count its devices: %s. Nodes that lack the resource are kept, and are not replaced by choice", c.Name, c.Resource, c.Unread),
				`write its selector as device.driver == "NAME" && device.attributes["DOMAIN"].ATTRIBUTE == VALUE`)
		}
	}
}

// published says how many devices a driver publishes, and where.
func published(d cluster.DeviceDriver) string {
	if d.Nodes == 0 {
		return fmt.Sprintf("%d devices that are no single node's", d.Devices)
	}
	return fmt.Sprintf("%d devices, on %d nodes", d.Devices, d.Nodes)
}
