package sim

import (
	"fmt"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// The namespaces: two of users, and that of daemons.
const (
	systemNamespace = "kube-system"
	firstNamespace  = "default"
	otherNamespace  = "team"
)

func namespaces() []cluster.Namespace {
	return []cluster.Namespace{{Name: firstNamespace}, {Name: systemNamespace},
		{Name: otherNamespace, Labels: map[string]string{"team": "blue"}}}
}

// drawName draws the namespace of a new app, and has it now and then share its name with an app of the other namespace,
// so that only both together tell their pods apart.
func (w *workloads) drawName(a *app) (namespace string) {
	namespace = firstNamespace
	if w.drawChance(0.3) {
		namespace = otherNamespace
	}
	if twin := w.anyApp(); twin != nil && w.drawChance(0.2) && !w.used[namespace+"/"+twin.name] {
		a.name = twin.name
	}
	w.used[namespace+"/"+a.name] = true
	return namespace
}

// drawApp makes an app that could run.
func (w *workloads) drawApp() *app {
	w.made++
	a := &app{name: fmt.Sprintf("app%d", w.made), replicas: int(w.drawInt(1, 6)),
		bootTime: w.drawDuration(time.Second, 8*time.Second),
		stopTime: w.drawDuration(0, 12*time.Second)}
	namespace := w.drawName(a)
	p := cluster.Pod{Namespace: namespace, Labels: map[string]string{"app": a.name}, Owner: cluster.OwnerOther,
		GraceSec: w.drawInt(1, 30),
		Need:     resources.List{CPU: 100 * w.drawInt(2, 17), Memory: 256 * w.drawInt(1, 12) * resources.MiB, Pods: 1}}
	a.stateful = w.drawChance(0.15)
	if a.stateful {
		p.Owner = cluster.OwnerStatefulSet
	}
	if w.drawChance(0.08) && !a.stateful {
		a.bare, p.Owner = true, cluster.OwnerNone
	}
	if w.drawChance(0.1) {
		a.stopTime = time.Hour // it ignores SIGTERM
	}
	if w.drawChance(0.35) && a.replicas > 1 {
		a.budget = &budget{minAvailable: a.replicas - int(w.drawInt(1, a.replicas-1)), unhealthy: w.drawChance(0.3)}
	}
	if w.drawChance(0.08) {
		p.DoNotDisrupt = []string{"true", "2m"}[w.rng.IntN(2)]
	}
	if w.drawChance(0.1) {
		p.Priority = int32(w.drawInt(1, 100))
	}
	w.drawConstraints(a, &p)
	if w.plan.share > 0 && w.drawChance(0.4) { // a node for each, all alike
		a.replicas = int(w.drawInt(4, 7))
		p.NodeSelector, p.Spread = nil, nil
		p.AntiAffinity = []cluster.AffinityTerm{{Key: labelHost,
			Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", a.name)}}}}
		if a.budget != nil {
			a.budget.minAvailable = min(a.budget.minAvailable, a.replicas-1)
		}
	}
	a.pattern = p
	w.volumes.furnish(a)
	return a
}

func (w *workloads) drawConstraints(a *app, p *cluster.Pod) {
	zones := w.catalog.zoneNames()
	own := &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", a.name)}}
	switch w.rng.IntN(8) {
	case 0:
		p.NodeSelector = map[string]string{labelZone: zones[w.rng.IntN(len(zones))]}
	case 1:
		p.Spread = []cluster.Spread{{Key: labelZone, MaxSkew: 1, Selector: own}}
	case 2:
		p.Spread = []cluster.Spread{{Key: labelHost, MaxSkew: int32(w.drawInt(1, 2)), Selector: own}}
	case 3:
		apart := cluster.AffinityTerm{Key: labelHost, Selector: own}
		if w.drawChance(0.4) {
			apart.NamespaceSelector = &cluster.Selector{} // of all namespaces
		}
		p.AntiAffinity = []cluster.AffinityTerm{apart}
	case 4:
		if slices.ContainsFunc(w.api.pools, func(p cluster.Pool) bool { return p.Name == "batch" }) {
			p.Tolerations = []cluster.Toleration{{Key: teamTaint, Operator: "Equal", Value: "batch",
				Effect: "NoSchedule"}}
			p.NodeSelector = map[string]string{"team": "batch"}
		}
	}
}

// drawDaemons adds what runs on every node: one that stays to the end, and sometimes one that must be drained.
func (w *workloads) drawDaemons() {
	for i, name := range []string{"net", "logs"} {
		if i == 1 && w.drawChance(0.6) {
			continue
		}
		p := cluster.Pod{Namespace: systemNamespace, Labels: map[string]string{"app": name},
			Owner:    cluster.OwnerDaemonSet,
			GraceSec: 5,
			Need:     resources.List{CPU: 50, Memory: 64 * resources.MiB, Pods: 1},
			Tolerations: []cluster.Toleration{{Key: taintNotReady, Operator: "Exists"},
				{Key: taintUnreachable, Operator: "Exists"}}}
		p.Tolerations = append(p.Tolerations, cluster.Toleration{Key: teamTaint, Operator: "Exists"})
		if i == 0 {
			p.Tolerations = []cluster.Toleration{{Operator: "Exists"}}
		}
		w.startApp(&app{name: name, daemon: true, pattern: p, bootTime: time.Second, stopTime: time.Second})
	}
}
