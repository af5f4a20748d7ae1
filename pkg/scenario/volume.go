package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"joiner/pkg/cluster"
)

// addVolumeLimit reads "DRIVER COUNT".
func addVolumeLimit(n *cluster.Node, text string) error {
	driver, count, _ := strings.Cut(text, " ")
	most, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return fmt.Errorf("node %s: attaches %q: %w", n.Name, text, err)
	}
	if n.VolumeLimits == nil {
		n.VolumeLimits = map[string]int64{}
	}
	n.VolumeLimits[driver] = most
	return nil
}

// tooManyVolumes says of which drivers the machine cannot attach all volumes. Only what the plan put there is its fault.
func tooManyVolumes(m *machine) []string {
	drivers := map[string]map[string]bool{}
	for _, p := range m.pods {
		for _, v := range p.Volumes {
			if drivers[v.Driver] == nil {
				drivers[v.Driver] = map[string]bool{}
			}
			drivers[v.Driver][v.ID] = true
		}
	}
	var bad []string
	for _, p := range m.came {
		for _, v := range p.Volumes {
			if most, limited := m.limits[v.Driver]; limited && int64(len(drivers[v.Driver])) > most {
				bad = append(bad, fmt.Sprintf("%s: %d volumes of %s, at most %d can be attached", m.name, len(drivers[v.Driver]), v.Driver, most))
			}
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}
