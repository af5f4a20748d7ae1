package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

// workloads are the apps of users, and the controllers that keep their pods running.
type workloads struct {
	*engine
	api       *apiServer
	catalog   *catalog
	kubelets  *kubelets
	scheduler *scheduler
	volumes   *volumes
	apps      []*app
	used      map[string]bool // keys of all apps that there ever were
}

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

	volumes       int      // volumes of each pod
	volumesAtOnce bool     // they are made before the pod has a node
	volumeZones   []string // where they may be, none for anywhere
}

// key names the app in the cluster.
func (a *app) key() string { return a.pattern.Namespace + "/" + a.name }

// isKinOf reports whether pods of the other app count where those of this one are counted.
func (a *app) isKinOf(other *app) bool {
	return a.pattern.Namespace == other.pattern.Namespace && a.pattern.Labels["app"] == other.pattern.Labels["app"]
}

// reconcileApp makes and removes pods so that the app has its replicas.
func (w *workloads) reconcileApp(a *app) {
	switch {
	case !slices.Contains(w.apps, a):
		for _, p := range w.podsOf(a) {
			w.kubelets.endPod(p, p.GraceSec)
		}
	case a.daemon:
		w.reconcileDaemon(a)
	case a.stateful:
		for i := range a.replicas {
			if name := fmt.Sprintf("%s-%d", a.name, i); w.api.pods[a.pattern.Namespace+"/"+name] == nil {
				w.addPod(a, name, "")
			}
		}
		for _, p := range w.podsOf(a) {
			if ordinal, err := strconv.Atoi(p.Name[len(a.name)+1:]); err == nil && ordinal >= a.replicas {
				w.kubelets.endPod(p, p.GraceSec)
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
func (w *workloads) shrinkApp(a *app) {
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
		w.kubelets.endPod(active[i], active[i].GraceSec)
	}
}

func (w *workloads) reconcileDaemon(a *app) {
	have := map[string]bool{}
	for _, p := range w.podsOf(a) {
		have[p.NodeName] = true
	}
	for _, name := range slices.Sorted(maps.Keys(w.api.nodes)) {
		n := w.api.nodes[name]
		if t, known := w.catalog.types[n.Labels[labelType]]; known && !a.pattern.Need.FitsIn(t.Allocatable) {
			continue // its pod waits
		}
		if have[name] || n.down || len(cluster.Untolerated(hardTaints(n.Taints), a.pattern.Tolerations)) > 0 {
			continue
		}
		a.made++
		w.addPod(a, fmt.Sprintf("%s-%04d", a.name, a.made), name)
	}
}

func (w *workloads) podsOf(a *app) []*pod {
	return selectInOrder(w.api.pods, func(p *pod) bool { return p.app == a })
}

func (w *workloads) activePods(a *app) (n int) {
	for _, p := range w.api.pods {
		if p.app == a && p.Active() {
			n++
		}
	}
	return n
}

// addPod makes a pod; one of a DaemonSet is bound at once.
func (w *workloads) addPod(a *app, name, node string) {
	w.made++
	p := &pod{Pod: a.pattern, app: a}
	p.Name, p.UID, p.Created, p.Phase = name, fmt.Sprintf("uid-pod-%d", w.made), w.toSecond(), "Pending"
	if !a.bare {
		p.Controller = "uid-" + a.key()
	}
	p.volumeClaims = w.volumes.claim(a, name, w.scheduler.trySchedule)
	w.api.pods[p.Key()] = p
	if node != "" {
		w.scheduler.bindPod(p, w.api.nodes[node])
		return
	}
	w.scheduler.trySchedule()
}

// setReplicas is kubectl scale.
func (w *workloads) setReplicas(a *app, n int) {
	w.addTrace("app %s is scaled from %d to %d", a.key(), a.replicas, n)
	a.replicas = n
	if a.budget != nil {
		a.budget.minAvailable = min(a.budget.minAvailable, max(n-1, 0))
	}
	w.reconcileApp(a)
}

// stopApp is kubectl delete deployment.
func (w *workloads) stopApp(a *app) {
	w.addTrace("app %s is deleted", a.key())
	w.apps = slices.DeleteFunc(w.apps, func(other *app) bool { return other == a })
	w.reconcileApp(a)
}

// startApp is kubectl apply.
func (w *workloads) startApp(a *app) {
	w.addTrace("app %s starts with %d pods of %s%s", a.key(), a.replicas, a.pattern.Need, a.describeConstraints())
	w.apps = append(w.apps, a)
	w.reconcileApp(a)
}

// describeConstraints says what the app asks of nodes and of whoever moves its pods.
func (a *app) describeConstraints() string {
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
	if a.volumes > 0 {
		out += fmt.Sprintf(", %d volumes each, at once %t, in %v", a.volumes, a.volumesAtOnce, a.volumeZones)
	}
	if a.pattern.DoNotDisrupt != "" {
		out += ", protected for " + a.pattern.DoNotDisrupt
	}
	return out
}

// appSizes returns the number of pods that the apps are to have.
func (w *workloads) appSizes() map[*app]int {
	out := map[*app]int{}
	for _, a := range w.apps {
		if !a.daemon {
			out[a] = a.replicas
		}
	}
	return out
}

// budget is a PodDisruptionBudget of one app.
type budget struct {
	minAvailable int
	unhealthy    bool // unhealthyPodEvictionPolicy AlwaysAllow
}

// allowedEvictions returns the number of pods of the app that may go now.
func (w *workloads) allowedEvictions(a *app) int { return w.healthyPods(a) - a.budget.minAvailable }

func (w *workloads) healthyPods(a *app) (n int) {
	for _, p := range w.api.pods {
		if p.app == a && p.Ready && !p.Terminating() {
			n++
		}
	}
	return n
}

func (a *app) appSelector() *cluster.Selector {
	return &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", a.name)}}
}

func (w *workloads) anyApp() *app {
	var out []*app
	for _, a := range w.apps {
		if !a.daemon {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out[w.rng.IntN(len(out))]
}
