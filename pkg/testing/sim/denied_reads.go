package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
)

// labelTeam is the label for which pods ask that belong to a pool of their own.
const labelTeam = "team"

// deniedClass is the class that some worlds have beside the others', and its pool, about which reads are refused. It is
// the first by name, so that all others come after it.
const deniedClass = "barred"

// deniedRead is a read of an object that is refused: with 403, however often it is asked.
type deniedRead struct {
	verb    string
	calls   []string
	ofClass bool // the object is the second class
	kind    int  // else of denyOne
}

// deniedReads returns the reads from which worlds draw.
func deniedReads() []deniedRead {
	return []deniedRead{
		{verb: "read", calls: []string{"get class"}, ofClass: true},
		{verb: "look up the images and subnets of", calls: []string{"look up class"}, ofClass: true},
		{verb: "read the launch template of", calls: []string{"launch", "launch batch"}, ofClass: true},
		{verb: "read claim", calls: []string{"get claim"}, kind: 0},
		{verb: "read node", calls: []string{"get node", "list pods of node"}, kind: 1},
	}
}

// drawDeniedRead has one seed in four of those that may write everything refuse reads of an object, by a chance of its
// own. A class has a pool and an app of its own.
func (w *world) drawDeniedRead(seed uint64, d *denial) {
	rng := rand.New(rand.NewPCG(seed, 0x7265616473))
	if rng.IntN(4) > 0 {
		return
	}
	w.network.denied = d
	all := deniedReads()
	d.read = &all[rng.IntN(len(all))]
	begins := time.Minute + time.Duration(rng.Int64N(int64(w.plan.storm/2)))
	if !d.read.ofClass {
		if rng.IntN(2) == 0 {
			w.runAfter(begins, func() { w.denyOne(d.read.kind) })
		}
		return
	}
	w.addDeniedClass()
	w.runAfter(begins, func() {
		d.deny(deniedClass)
		w.addTrace("-- from now on nobody may %s %s --", d.verb(), d.name)
	})
}

// addDeniedClass makes a second class, its pool, and an app whose pods only nodes of that pool take.
func (w *world) addDeniedClass() {
	w.api.addClass(deniedClass)
	pool := cluster.Pool{Name: deniedClass, UID: "uid-" + deniedClass, Class: deniedClass, Ready: true, Uncounted: true,
		Hash: "1", Labels: map[string]string{labelTeam: deniedClass}, Disruption: cluster.Disruption{Never: true},
		Taints: []cluster.Taint{{Key: teamTaint, Value: deniedClass, Effect: "NoSchedule"}}}
	at := len(w.api.pools)
	if w.api.staticPool() != nil { // the last one
		at--
	}
	w.api.pools = slices.Insert(w.api.pools, at, pool)
	w.api.addNodePool(pool)
	w.workloads.made++
	name := fmt.Sprintf("app%d", w.workloads.made)
	w.workloads.startApp(&app{name: name, replicas: 2, bootTime: time.Second, stopTime: time.Second,
		pattern: cluster.Pod{Namespace: firstNamespace, Owner: cluster.OwnerOther, GraceSec: 1,
			Labels: map[string]string{"app": name}, NodeSelector: map[string]string{labelTeam: deniedClass},
			Tolerations: []cluster.Toleration{{Key: teamTaint, Operator: "Equal", Value: deniedClass,
				Effect: "NoSchedule"}},
			Need: resources.List{CPU: 1500, Memory: 512 * resources.MiB, Pods: 1}}})
}

// kindInCalm is the kind of object that is refused from the beginning of the calm on.
func (d *denial) kindInCalm() int {
	if d.read != nil {
		return d.read.kind
	}
	return d.rng.IntN(3)
}

// launchesOf reports whether the call launches for claims of the class.
func (n *network) launchesOf(r *portRequest, class string) bool {
	if r.call != "launch" && r.call != "launch batch" {
		return false
	}
	who, _, _ := strings.Cut(r.key, " ")
	for _, c := range n.api.claims {
		batch, _, _ := strings.Cut(c.Annotations[v1.AnnotationLaunchBatch], "/")
		if c.Class == class && (c.Name == who || batch == who) {
			return true
		}
	}
	return false
}

// scaleDeniedClass has more pods ask for nodes of the class about which reads are refused.
func (w *world) scaleDeniedClass() {
	for _, a := range w.workloads.apps {
		if a.pattern.NodeSelector[labelTeam] == deniedClass {
			w.workloads.setReplicas(a, a.replicas+2)
		}
	}
}

// kinOfClass are the names of what goes with the class of that name: its claims, what goes with them, and the pods that
// only its nodes take.
func (w *world) kinOfClass(class string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(w.api.claims)) {
		if c := w.api.claims[name]; c.Class == class {
			out = append(out, w.kinOf(c)...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.api.pods)) {
		if w.api.pods[key].NodeSelector[labelTeam] == class {
			out = append(out, key)
		}
	}
	return out
}

// checkDenialTold: an invocation that was refused to read an object ends with an error. One that is refused nothing any
// more when it ends, because the object may be read again, may have read it since. One whose object has gone meanwhile
// left nothing undone.
func checkDenialTold(w *world, s invocationReturned) []string {
	inv, d := s.inv, w.network.denied
	if d == nil || d.read == nil || d.name == "" || !inv.denied || inv.err != nil || w.isDeniedGone(d) {
		return nil
	}
	return broken("%s was refused to %s %s and does not say so", inv, d.verb(), d.name)
}

// isDeniedGone reports whether nothing is left that the refused read was for: the node, or claims that wait for their
// instances by the launch template.
func (w *world) isDeniedGone(d *denial) bool {
	switch {
	case slices.Contains(d.read.calls, "launch"):
		for _, c := range w.api.claims {
			if c.Class == d.name && c.ProviderID == "" && c.Deleting.IsZero() {
				return false
			}
		}
		return true
	case slices.Contains(d.read.calls, "get node"):
		return w.api.nodes[d.name] == nil
	}
	return false
}
