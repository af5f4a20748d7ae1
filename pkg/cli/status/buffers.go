package status

import (
	"cmp"
	"fmt"
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/provisioning/stoppedcapacity"
	"joiner.sh/pkg/scheduling/binpack"
)

// Buffer is a CapacityBuffer of stopped capacity with the nodes that are kept for it. A node that has room for pods of
// two buffers is kept for both.
type Buffer struct {
	Name      string `json:"name"`      // namespace/name
	Pods      int    `json:"pods"`      // that it keeps room for
	Covered   int    `json:"covered"`   // of Pods, those that a stopped node has room for
	Stopped   int    `json:"stopped"`   // nodes that wait to be started
	Preparing int    `json:"preparing"` // nodes that are launched, warmed or stopped
}

// String says how full the buffer is. Covered are pods for which a stopped node has room.
func (b Buffer) String() string {
	return fmt.Sprintf("CapacityBuffer %s: stopped nodes have room for %d of %d pods; %d ready, %d being prepared",
		b.Name, b.Covered, b.Pods, b.Stopped, b.Preparing)
}

// stoppedBuffers are the buffers of stopped capacity, sorted, and how many of their nodes start for pods now.
func stoppedBuffers(s cluster.Snapshot, sells binpack.Offerings) (list []Buffer, starting int) {
	for _, c := range s.Claims {
		asked := c.Standby() && !c.StartRequested().IsZero()
		if asked || c.Condition(v1.ConditionStopped).Reason == v1.ReasonStarting {
			starting++
		}
	}
	if len(s.Stopped) == 0 {
		return nil, starting
	}
	claims, on := map[string]cluster.Claim{}, map[string]cluster.Claim{}
	for _, c := range s.Claims {
		claims[c.Name] = c
	}
	for _, e := range stoppedcapacity.NextRefill(s, sells, 0).Placed {
		on[e.Pod] = claims[e.Node]
	}
	for _, o := range s.Stopped {
		b, seen := Buffer{Name: o.Namespace + "/" + o.Name, Pods: len(o.Pods)}, map[string]bool{}
		for _, p := range o.Pods {
			c := on[p.Key()]
			waits := c.Is(v1.ConditionStopped)
			if waits {
				b.Covered++
			}
			switch {
			case c.Name == "" || seen[c.Name]:
			case waits:
				b.Stopped++
			default:
				b.Preparing++
			}
			seen[c.Name] = true
		}
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b Buffer) int { return cmp.Compare(a.Name, b.Name) })
	return list, starting
}

// BufferLines are the lines about stopped capacity; none where no CapacityBuffer asks for it.
func BufferLines(v View) (out []string) {
	for _, b := range v.Buffers {
		out = append(out, b.String())
	}
	if v.Starting > 0 {
		out = append(out, fmt.Sprintf("stopped capacity: %d nodes are started for pods", v.Starting))
	}
	return out
}
