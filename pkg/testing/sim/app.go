package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"joiner/pkg/model/cluster"
)

const namespace = "default"

// app keeps pods running, as the controllers of Kubernetes do.
type app struct {
	name     string
	pattern  cluster.Pod
	replicas int
	stateful bool // a pod is made anew under its name, once the old one is gone
	bare     bool // nobody makes a pod anew
	daemon   bool // one pod on each node
	budget   *budget
	stopTime time.Duration // that its processes take to end
	bootTime time.Duration // from binding to ready
	made     int

	disks      int      // volumes of each pod
	diskAtOnce bool     // they are made before the pod has a node
	diskZones  []string // where they may be, none for anywhere
}

// reconcileApp makes and removes pods so that the app has its replicas.
func (w *world) reconcileApp(a *app) {
	switch {
	case !slices.Contains(w.apps, a):
		for _, p := range w.podsOf(a) {
			w.endPod(p, p.GraceSec)
		}
	case a.daemon:
		w.controlDaemon(a)
	case a.stateful:
		for i := range a.replicas {
			if name := fmt.Sprintf("%s-%d", a.name, i); w.pods[namespace+"/"+name] == nil {
				w.addPod(a, name, "")
			}
		}
		for _, p := range w.podsOf(a) {
			if ordinal, err := strconv.Atoi(p.Name[len(a.name)+1:]); err == nil && ordinal >= a.replicas {
				w.endPod(p, p.GraceSec)
			}
		}
	case !a.bare || a.made == 0:
		for active := w.activePods(a); active < a.replicas; active++ {
			a.made++
			w.addPod(a, fmt.Sprintf("%s-%04d", a.name, a.made), "")
		}
		w.shrinkApp(a)
	}
}

// shrinkApp ends the newest pods that are too many; those without a node first.
func (w *world) shrinkApp(a *app) {
	var active []*pod
	for _, p := range w.podsOf(a) {
		if p.Active() {
			active = append(active, p)
		}
	}
	slices.SortStableFunc(active, func(a, b *pod) int {
		if (a.NodeName == "") != (b.NodeName == "") {
			if a.NodeName == "" {
				return 1
			}
			return -1
		}
		return 0
	})
	for i := a.replicas; i < len(active); i++ {
		w.endPod(active[i], active[i].GraceSec)
	}
}

func (w *world) controlDaemon(a *app) {
	have := map[string]bool{}
	for _, p := range w.podsOf(a) {
		have[p.NodeName] = true
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		n := w.nodes[name]
		if have[name] || n.down || len(cluster.Untolerated(hardTaints(n.Taints), a.pattern.Tolerations)) > 0 {
			continue
		}
		a.made++
		w.addPod(a, fmt.Sprintf("%s-%04d", a.name, a.made), name)
	}
}

func (w *world) podsOf(a *app) []*pod {
	var out []*pod
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		if p := w.pods[key]; p.app == a {
			out = append(out, p)
		}
	}
	return out
}

func (w *world) activePods(a *app) (n int) {
	for _, p := range w.pods {
		if p.app == a && p.Active() {
			n++
		}
	}
	return n
}

// addPod makes a pod; one of a DaemonSet is bound at once.
func (w *world) addPod(a *app, name, node string) {
	w.made++
	p := &pod{Pod: a.pattern, app: a}
	p.Namespace, p.Name, p.UID, p.Created, p.Phase = namespace, name, fmt.Sprintf("uid-pod-%d", w.made), w.toSecond(),
		"Pending"
	if !a.bare {
		p.Controller = "uid-" + a.name
	}
	p.disks = w.disks.claim(a, name, w.trySchedule)
	w.pods[p.Key()] = p
	if node != "" {
		w.bindPod(p, w.nodes[node])
		return
	}
	w.trySchedule()
}

// setReplicas is kubectl scale.
func (w *world) setReplicas(a *app, n int) {
	w.addTrace("app %s is scaled from %d to %d", a.name, a.replicas, n)
	a.replicas = n
	if a.budget != nil {
		a.budget.minAvailable = min(a.budget.minAvailable, max(n-1, 0))
	}
	w.reconcileApp(a)
}

// stopApp is kubectl delete deployment.
func (w *world) stopApp(a *app) {
	w.addTrace("app %s is deleted", a.name)
	w.apps = slices.DeleteFunc(w.apps, func(other *app) bool { return other == a })
	w.reconcileApp(a)
}

// startApp is kubectl apply.
func (w *world) startApp(a *app) {
	w.addTrace("app %s starts with %d pods of %s%s", a.name, a.replicas, a.pattern.Need, a.drawConstraints())
	w.apps = append(w.apps, a)
	w.reconcileApp(a)
}

// drawConstraints says what the app asks of nodes and of whoever moves its pods.
func (a *app) drawConstraints() string {
	var out string
	for _, s := range a.pattern.Spread {
		out += fmt.Sprintf(", spread over %s by %d", s.Key, s.MaxSkew)
	}
	if len(a.pattern.AntiAffinity) > 0 {
		out += ", apart"
	}
	for _, k := range slices.Sorted(maps.Keys(a.pattern.NodeSelector)) {
		out += ", " + k + "=" + a.pattern.NodeSelector[k]
	}
	if a.budget != nil {
		out += fmt.Sprintf(", %d must be available", a.budget.minAvailable)
	}
	if a.disks > 0 {
		out += fmt.Sprintf(", %d volumes each, at once %t, in %v", a.disks, a.diskAtOnce, a.diskZones)
	}
	if a.pattern.DoNotDisrupt != "" {
		out += ", protected for " + a.pattern.DoNotDisrupt
	}
	return out
}
