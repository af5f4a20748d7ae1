package sim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"joiner/pkg/disruption"
	"joiner/pkg/model/cluster"
	decided "joiner/pkg/model/plan"
)

// WithVolumes reads what volumes allow: the claims and volumes in one moment, the limits of nodes in another. Like the
// real adapter it reads nothing if no pod uses any, and says of pods what is so now.
func (p *Ports) WithVolumes(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, error) {
	if !slices.ContainsFunc(s.Pods, func(pod cluster.Pod) bool { return len(pod.UnreadClaims) > 0 }) {
		return s, nil
	}
	s.Pods, s.Nodes = slices.Clone(s.Pods), slices.Clone(s.Nodes)
	err := tryPort(ctx, p, "read volumes", "", func() error {
		for i, pod := range s.Pods {
			s.Pods[i] = p.w.disks.describe(pod, pod.UnreadClaims)
		}
		return nil
	})
	if err != nil {
		return cluster.Snapshot{}, err
	}
	return s, tryPort(ctx, p, "read volume limits", "", func() error {
		for i, n := range s.Nodes {
			s.Nodes[i] = p.w.disks.describeNode(n)
		}
		return nil
	})
}

// ListAttachments lists the volumes attached to the nodes.
func (p *Ports) ListAttachments(ctx context.Context, nodes []string) ([]cluster.Attachment, error) {
	return callPort(ctx, p, "list attachments", "",
		func() ([]cluster.Attachment, error) { return p.w.disks.attachments(nodes), nil })
}

// refusesVolumes says why the scheduler keeps the pod off the node for the sake of volumes.
func (w *world) refusesVolumes(p *pod, n *node) string {
	if len(p.disks) == 0 {
		return ""
	}
	var others []string
	for _, other := range w.pods {
		if other.NodeName == n.Name && !other.Terminal() {
			others = append(others, other.disks...)
		}
	}
	return w.disks.refuse(p.disks, n.Name, n.Labels[labelZone], others)
}

// checkLaunchZone looks at a claim that is about to be stored: it comes where the volumes of its pods are, whatever EC2
// gives of it.
func (w *world) checkLaunchZone(c *claim, l decided.Launch) {
	for _, key := range l.Pods {
		p := w.pods[key]
		if p == nil {
			continue
		}
		zone := w.disks.zoneOf(p.disks, late)
		if zone == "" {
			continue
		}
		for _, z := range w.zoneNames() {
			if z != zone && l.Requirements.Has(labelZone, z) {
				w.addViolation("node where the volume is not",
					"claim %s for pod %s may come in %s, and the pod's volume is in %s", c.Name, key, z, zone)
				return
			}
		}
	}
}

// checkVolumesStay looks at a node that is about to be taken out of service by choice: for each pod whose volume is in
// a zone something else is there, or comes, that the pod may run on. Pods that came lately may have taken the room that
// was meant for it, and count for nothing.
func (w *world) checkVolumesStay(n *node) {
	c := w.byUID[n.machine.owner]
	if pool, _ := w.poolOf(c.Pool); pool.Static {
		return
	}
	waived := goesForDrift(c) && c.TerminationGrace != nil
	for _, p := range w.podsOn(n.Name) {
		zone := w.disks.zoneOf(p.disks, late)
		if zone == "" || p.Terminating() || time.Since(p.Started) < late || waived &&
			p.Protected(time.Now().Add(-w.plan.skew-seconds)) {
			continue
		}
		if !w.offersRoom(p, n, zone) {
			w.addViolation("moved away from its volume",
				"node %s is to go, and for pod %s, whose volume is in %s, nothing else is there or comes", n.Name,
				p.Key(), zone)
		}
	}
}

// offersRoom reports whether a node in the zone beside that one is large enough for the pod and the pods that have been
// there for some time, or a claim may come there.
func (w *world) offersRoom(p *pod, but *node, zone string) bool {
	for _, other := range w.nodes {
		if other == but || other.Labels[labelZone] != zone || !podSelects(p, other.Labels) {
			continue
		}
		used := p.Need
		for _, there := range w.podsOn(other.Name) {
			if !there.Terminating() && time.Since(there.Started) > late {
				used = used.Add(there.Need)
			}
		}
		if used.FitsIn(other.Allocatable) || !other.isTainted() && w.noticedLately(other) {
			return true
		}
	}
	for _, c := range w.claims {
		if c.Deleting.IsZero() && w.nodeOf(c) == nil && c.Requirements.Has(labelZone, zone) {
			return true
		}
	}
	return false
}

// checkUndone looks at what is told of a disruption that is taken back: at rest none is because a pod finds no room
// where its volume is, unless other pods came to the room that there was.
func (w *world) checkUndone(e cluster.Event) {
	c := w.claims[e.Name]
	if e.Reason != "DisruptionFailed" || e.Kind != "NodeClaim" || c == nil || w.calmed.IsZero() ||
		time.Since(w.calmed) < echo {
		return
	}
	mark, _ := markOf(c)
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		p := w.pods[key]
		zone := w.disks.zoneOf(p.disks, 0)
		if zone != "" && strings.Contains(e.Message, "pod "+key+" has no room") && !w.filledSince(zone, mark) {
			w.addViolation("in vain for a volume", "%s %s: %s", e.Kind, e.Name, e.Message)
		}
	}
}

// filledSince reports whether a pod has come, since the disruption began, to a node of the zone on which it counted:
// those that it brings, or any if it brings none.
func (w *world) filledSince(zone string, mark disruption.CommandMark) bool {
	for _, p := range w.pods {
		n := w.nodes[p.NodeName]
		if n == nil || n.Labels[labelZone] != zone || p.app.daemon ||
			p.Started.Before(mark.Since.Truncate(time.Second)) {
			continue
		}
		c := w.byUID[n.owner]
		if mark.Replacements == 0 || c != nil && c.Annotations[disruption.AnnotationReplaces] == mark.ID {
			return true
		}
	}
	return false
}

// volumesApart reports whether the volumes of the pod are, or may be, only where its spread does not let it be, on
// whatever node comes there. They were placed while there were no nodes in other zones; once there are, Kubernetes
// leaves such a pod waiting for ever. Nobody makes a node for it either while some zone has no node yet: zones in which
// one may come count for a spread.
func (w *world) volumesApart(p *pod, pool cluster.Pool) bool {
	zones := w.disks.zonesOf(p.disks)
	apart := func() bool {
		return len(zones) > 0 && !slices.ContainsFunc(zones,
			func(zone string) bool { return w.spreadAllows(p, anyNode(pool, zone)) })
	}
	if apart() {
		return true
	}
	for _, zone := range w.zoneNames() {
		n := anyNode(pool, zone)
		w.nodes[n.Name] = n
		defer delete(w.nodes, n.Name)
	}
	return apart()
}

// anyNode is some node of the pool in the zone.
func anyNode(pool cluster.Pool, zone string) *node {
	return &node{Node: cluster.Node{Name: "any in " + zone,
		Labels: mergeAnnotations(pool.Labels, map[string]string{labelZone: zone})}}
}
