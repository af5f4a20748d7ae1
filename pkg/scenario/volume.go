package scenario

import (
	"fmt"
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
