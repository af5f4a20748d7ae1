package nomination

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"slices"
	"strings"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
)

// Limits.
const (
	MostPods   = 5000             // that one pass writes a toleration for
	mostOfAPod = 8                // tolerations that a pod collects, since none can be taken back
	longest    = time.Minute      // from Ready on that a node is held
	others     = 30 * time.Second // from Ready on that a node with its pods is held while pods of other held nodes wait
)

// TolerationNeeded is a toleration that a pod should get.
type TolerationNeeded struct {
	Pod   cluster.Pod
	Taint cluster.Taint
}

// NominatePods returns the plan with a hold on the nodes that another pod of the plan could fill up. There is none
// where all pods are alike, nor for pods that run elsewhere yet: those that come in their stead have other names.
func NominatePods(s cluster.Snapshot, p plan.Plan) plan.Plan {
	if !s.Rules.NominatedPodsOnly {
		return p
	}
	pods := plannedPods(s, p)
	if podsInterchangeable(pods, p) {
		return p
	}
	p.Launches = slices.Clone(p.Launches)
	left := MostPods
	for i := range p.Launches {
		l := &p.Launches[i]
		if len(l.Pods) > left || !canNominate(pods, l.Pods) {
			continue
		}
		left -= len(l.Pods)
		l.Startup = append(slices.Clone(l.Startup), nominationTaint(strings.Join(l.Pods, ",")))
	}
	return p
}

// nominationTaint is the hold that stands for what is named.
func nominationTaint(name string) cluster.Taint {
	sum := sha256.Sum256([]byte(name))
	return cluster.Taint{Key: api.TaintHold, Value: hex.EncodeToString(sum[:8]), Effect: "NoSchedule"}
}

// podsInterchangeable reports whether it does not matter which pod of the plan goes where.
func podsInterchangeable(pods map[string]*cluster.Pod, p plan.Plan) bool {
	var names []string
	for _, l := range p.Launches {
		names = append(names, l.Pods...)
	}
	for _, e := range p.Existing {
		names = append(names, e.Pod)
	}
	return !slices.ContainsFunc(names,
		func(n string) bool { return !reflect.DeepEqual(withoutNames(pods[n]), withoutNames(pods[names[0]])) })
}

// withoutNames is a copy of the pod without what tells it from its like; nothing where there is no pod.
func withoutNames(p *cluster.Pod) (out cluster.Pod) {
	if p != nil {
		out = *p
	}
	out.Name, out.UID, out.Created, out.Holds = "", "", time.Time{}, nil
	return out
}

// canNominate reports whether some of the pods exist and none has a node.
func canNominate(pods map[string]*cluster.Pod, names []string) bool {
	some := false
	for _, n := range names {
		p, ok := pods[n]
		if ok && p.NodeName != "" {
			return false
		}
		some = some || ok && !p.Virtual
	}
	return some
}

// TaintOf returns the taint that holds the claim's node; ok is false when it is not held from its birth.
func TaintOf(c cluster.Claim) (t cluster.Taint, ok bool) {
	return lists.Find(c.StartupTaints, cluster.Taint.IsNomination)
}

// AtBoot returns the taints as a kubelet registers with them: a hold is that of all held nodes.
func AtBoot(taints []cluster.Taint) []cluster.Taint {
	out := slices.Clone(taints)
	for i := range out {
		if out[i].IsNomination() {
			out[i].Value = api.HoldAtBoot
		}
	}
	return out
}

// TaintsOnRegistration returns the node's taints with the claim's own hold in place of the one the node booted with.
func TaintsOnRegistration(taints []cluster.Taint, c cluster.Claim) []cluster.Taint {
	out := slices.Clone(taints)
	own, held := TaintOf(c)
	for i := range out {
		if held && out[i].Key == own.Key && out[i].Value == api.HoldAtBoot {
			out[i] = own
		}
	}
	return out
}

// IsHeld reports whether the node is held still.
func IsHeld(n cluster.Node) bool {
	return slices.ContainsFunc(n.Taints, cluster.Taint.IsNomination)
}

// TolerationsNeeded lists the tolerations that the plan's pods lack for the held nodes it has them on, at most
// MostPods.
func TolerationsNeeded(s cluster.Snapshot, p plan.Plan) []TolerationNeeded {
	held := map[string]cluster.Taint{}
	for _, node := range s.StateNodes() {
		if node.Claim == nil || node.MarkedForDeletion() {
			continue
		}
		if t, ok := TaintOf(*node.Claim); ok && (node.Node == nil || IsHeld(*node.Node)) {
			held[node.Name()] = t
		}
	}
	if len(held) == 0 {
		return nil
	}
	pods := plannedPods(s, p)
	var out []TolerationNeeded
	for _, e := range p.Existing {
		t, ok := held[e.Node]
		pod := pods[e.Pod]
		if !ok || pod == nil || pod.Virtual || pod.NodeName != "" || slices.Contains(pod.Holds, t.Value) ||
			len(pod.Holds) >= mostOfAPod {
			continue
		}
		if len(out) == MostPods {
			break
		}
		out = append(out, TolerationNeeded{Pod: *pod, Taint: t})
	}
	return out
}

// CountWaiting counts the pods without a node by the value of the holds they tolerate.
func CountWaiting(pods []cluster.Pod) map[string]int {
	out := map[string]int{}
	for i := range pods {
		if p := &pods[i]; p.NodeName == "" && p.Active() {
			for _, v := range p.Holds {
				out[v]++
			}
		}
	}
	return out
}

// ReleaseReason says why a Ready node need not be held any longer, empty if it must.
func ReleaseReason(t cluster.Taint, n cluster.Node, waiting map[string]int, now time.Time) string {
	ready := now.Sub(n.ReadySince)
	switch {
	case waiting[t.Value] == 0 && (len(waiting) == 0 || ready >= others):
		return "no pod that it was planned for waits"
	case ready >= longest:
		return "it has been ready for " + longest.String()
	}
	return ""
}

// plannedPods returns the pods of the snapshot that the plan has on nodes, by key.
func plannedPods(s cluster.Snapshot, p plan.Plan) map[string]*cluster.Pod {
	keys := map[[2]string]string{}
	addKey := func(key string) {
		namespace, name, _ := strings.Cut(key, "/")
		keys[[2]string{namespace, name}] = key
	}
	for _, l := range p.Launches {
		for _, key := range l.Pods {
			addKey(key)
		}
	}
	for _, e := range p.Existing {
		addKey(e.Pod)
	}
	out := make(map[string]*cluster.Pod, len(keys))
	if len(keys) == 0 {
		return out
	}
	for i := range s.Pods {
		pod := &s.Pods[i]
		if key, planned := keys[[2]string{pod.Namespace, pod.Name}]; planned {
			out[key] = pod
		}
	}
	return out
}
