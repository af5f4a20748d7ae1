package sim

import (
	"fmt"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
)

// startOtherVersion starts, now and then, another version of an app whose pods are to be spread over zones: few small
// pods with its labels, on nodes of the very zone in which one for one of its pods is starting. They count for the
// spread, so that the scheduler may keep that pod off the node that was made for it, and it needs another one.
func (u *users) startOtherVersion(m *machine) {
	c := u.api.byUID[m.owner]
	if c == nil || !u.troubleChance(0.4) {
		return
	}
	for _, a := range u.workloads.apps {
		spreads := slices.ContainsFunc(a.pattern.Spread, func(s cluster.Spread) bool { return s.Key == labelZone })
		waits := slices.ContainsFunc(u.workloads.podsOf(a), func(p *pod) bool {
			return p.NodeName == "" &&
				slices.Contains(c.pods, p.UID)
		})
		if !spreads || !waits || a.budget != nil || u.appsWithLabels(a) > 1 {
			continue
		}
		u.made++
		next := &app{name: fmt.Sprintf("app%d", u.made), replicas: int(u.drawInt(2, 3)), bootTime: a.bootTime,
			stopTime: a.stopTime}
		next.pattern = cluster.Pod{Namespace: a.pattern.Namespace, Labels: a.pattern.Labels, Owner: cluster.OwnerOther,
			GraceSec:     5,
			Need:         resources.List{CPU: 50, Memory: 64 * resources.MiB, Pods: 1},
			NodeSelector: map[string]string{labelZone: m.Zone}}
		u.runAfter(u.drawDuration(time.Second, 15*time.Second), func() {
			if u.hasRoom(next, m.Zone) {
				u.workloads.startApp(next)
			}
		})
		return
	}
}

// hasRoom reports whether a node in the zone takes a pod of the app now.
func (u *users) hasRoom(a *app, zone string) bool {
	p := &pod{Pod: a.pattern, app: a}
	for _, n := range u.api.nodes {
		if n.Labels[labelZone] == zone && u.scheduler.refusalReason(p, n) == "" {
			return true
		}
	}
	return false
}

// appsWithLabels returns the number of apps that have the labels of this one.
func (u *users) appsWithLabels(a *app) (n int) {
	for _, other := range u.workloads.apps {
		if other.isKinOf(a) {
			n++
		}
	}
	return n
}
