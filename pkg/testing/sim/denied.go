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

// denial is an object about which every writing call is refused, or some that read it, from a moment in the storm until
// all others are at rest: a policy, an admission webhook, a protected instance, a condition on tags. Its chance is its
// own, so that seeds without one play as ever.
type denial struct {
	rng    *rand.Rand
	name   string      // of the object; empty before and after
	awaits bool        // the next claim that is made
	read   *deniedRead // nil: writes are refused
}

// deniedError is the error of a call that is refused however often it is made.
type deniedError struct{ what string }

// Error says what is refused.
func (e deniedError) Error() string { return e.what + ": forbidden" }

// writesOneObject reports whether the call writes the object that its key begins with.
func writesOneObject(call string) bool {
	switch call {
	case "annotate claim", "label claim", "write status of claim", "adopt claim", "delete claim", "release claim",
		"launch", "terminate", "tag instance", "mark node disrupted", "taint node", "untaint node", "register node",
		"initialize node", "delete node", "release node", "open node", "evict pod", "delete pod", "remove pod",
		"let tolerate", "count pool", "record registrations", "note shifts":
		return true
	}
	return false
}

// drawDenial has one seed in three refuse writes of an object, and one in four of the others reads: of one that exists
// at a moment of the storm, or else one that exists when the calm begins, or the claim that is made next then.
func (w *world) drawDenial(seed uint64) {
	d := &denial{rng: rand.New(rand.NewPCG(seed, 0x64656e696564))}
	if d.rng.IntN(3) > 0 {
		w.drawDeniedRead(seed, d)
		return
	}
	w.network.denied = d
	if d.rng.IntN(2) == 0 {
		w.runAfter(time.Minute+time.Duration(d.rng.Int64N(int64(w.plan.storm/2))), func() { w.denyOne(d.rng.IntN(5)) })
	}
}

// denyOne refuses writes of an object of the kind from now on, if there is one.
func (w *world) denyOne(kind int) {
	var names []string
	switch kind {
	case 0:
		names = slices.Sorted(maps.Keys(w.api.claims))
	case 1:
		names = slices.Sorted(maps.Keys(w.api.nodes))
	case 2:
		for _, m := range w.ec2.livingInstances() {
			names = append(names, m.ID)
		}
	case 3:
		names = slices.Sorted(maps.Keys(w.api.pods))
	case 4:
		for _, p := range w.api.pools {
			names = append(names, p.Name)
		}
	}
	if len(names) > 0 {
		w.network.denied.deny(names[w.network.denied.rng.IntN(len(names))])
		w.addTrace("-- from now on nobody may %s %s --", w.network.denied.verb(), w.network.denied.name)
	}
}

func (d *denial) deny(name string) { d.name, d.awaits = name, false }

// noteCreated has the claim that was made refused from now on, if one is waited for.
func (n *network) noteCreated(r *portRequest, value any) {
	if c, ok := value.(cluster.Claim); ok && r.call == "create claim" && n.denied != nil && n.denied.awaits {
		n.denied.deny(c.Name)
		n.addTrace("-- from now on nobody may %s %s --", n.denied.verb(), c.Name)
	}
}

// denies reports whether the call is about the object, and refused.
func (n *network) denies(r *portRequest) bool {
	d := n.denied
	switch {
	case d == nil || d.name == "":
		return false
	case d.read != nil:
		return slices.Contains(d.read.calls, r.call) && (isAbout(r, d.name) || n.launchesOf(r, d.name))
	}
	return writesOneObject(r.call) && isAbout(r, d.name)
}

func isAbout(r *portRequest, name string) bool { return slices.Contains(strings.Fields(r.key), name) }

// verb returns the verb that nobody may do.
func (d *denial) verb() string {
	if d.read != nil {
		return d.read.verb
	}
	return "write"
}

// refuseDenied answers a call that is refused.
func (n *network) refuseDenied(r *portRequest, back time.Duration) {
	n.addTrace("%s %s %s: forbidden", r.inv, r.call, r.key)
	r.inv.faulty, r.inv.denied = true, true
	n.runAfter(back, func() { n.answerRequest(r, portAnswer{err: deniedError{r.call + " " + r.key}}) })
}

// restBesideDenied lets all come to rest but the object about which calls are refused and what belongs to it, and lets
// it be written and read from then on. Meanwhile there is something to do: users delete its claim and others, and start
// an app.
func (w *world) restBesideDenied(limit time.Duration) {
	d := w.network.denied
	if d == nil {
		return
	}
	if d.name == "" {
		if d.awaits = d.rng.IntN(3) == 0; !d.awaits {
			w.denyOne(d.kindInCalm())
		}
	}
	w.stirBesideDenied()
	w.runUntilEmpty(limit, aWhile, "others wait for what nobody may write", func() []string {
		return w.withoutKin(d.name, w.restProblems())
	})
	w.addTrace("-- %s may be written and read again --", d.name)
	d.name, d.awaits = "", false
}

// stirBesideDenied has users delete three claims, one of them of the object that nobody may write, and start an app.
func (w *world) stirBesideDenied() {
	d, most := w.network.denied, 3
	for _, name := range slices.Sorted(maps.Keys(w.api.claims)) {
		c := w.api.claims[name]
		if own := slices.Contains(w.kinOf(c), d.name); c.Deleting.IsZero() && (own || most > 1) {
			w.addTrace("a user deletes claim %s", name)
			w.api.deleteClaim(c, nil)
			c.dropped = time.Now()
			most--
		}
	}
	w.scaleDeniedClass()
	w.workloads.made++
	w.workloads.startApp(&app{name: fmt.Sprintf("app%d", w.workloads.made), replicas: 3, bootTime: time.Second,
		stopTime: time.Second, pattern: cluster.Pod{Namespace: firstNamespace, Owner: cluster.OwnerOther, GraceSec: 1,
			Labels: map[string]string{"app": fmt.Sprintf("app%d", w.workloads.made)},
			Need:   resources.List{CPU: 1500, Memory: 512 * resources.MiB, Pods: 1}}})
}

// kinOf are the names of the claim and of what goes with it, whether its status says so or not: instance, node and
// pods. What was started for its batch and belongs to no claim may be its instance.
func (w *world) kinOf(c *claim) []string {
	out := []string{c.Name}
	batch, _, batched := strings.Cut(c.Annotations[v1.AnnotationLaunchBatch], "/")
	owners := claimsByInstance(w)
	for _, m := range w.ec2.livingInstances() {
		if m != w.ec2.instanceOf(c) && m.owner != c.UID &&
			(!batched || m.Batch != batch || owners[m.ProviderID()] != "") {
			continue
		}
		out = append(out, m.ID)
		if m.node == nil {
			continue
		}
		out = append(out, m.node.Name)
		for _, p := range w.api.podsOn(m.node.Name) {
			out = append(out, p.Key())
		}
	}
	for name, n := range w.api.nodes { // whose instance may have ended
		if c.ProviderID != "" && n.ProviderID == c.ProviderID && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// withoutKin leaves out the problems that name the object, or a claim, node, instance, or pod that goes with it. A node
// on which room is kept for pods that cannot leave theirs is not replaced either.
func (w *world) withoutKin(name string, problems []string) []string {
	kin, roomKept := append([]string{name}, w.kinOfClass(name)...), false
	for _, c := range w.api.claims {
		if of := w.kinOf(c); slices.Contains(of, name) {
			kin = append(kin, of...)
			kin = append(kin, fmt.Sprintf("pool %s says", c.Pool), fmt.Sprintf("pool %s has", c.Pool))
			roomKept = roomKept || !c.Deleting.IsZero() &&
				slices.ContainsFunc(of, func(key string) bool { return w.api.pods[key] != nil })
		}
	}
	kin = append(kin, w.kinOfBudgets(kin)...)
	words := func(line string) []string {
		return strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" ,:\"", r) })
	}
	return slices.DeleteFunc(problems, func(line string) bool {
		waits := roomKept && strings.HasSuffix(line, "and is not replaced")
		return waits || slices.ContainsFunc(kin, func(k string) bool {
			return slices.Contains(words(line), k) || strings.HasPrefix(line, k)
		})
	})
}

// kinOfBudgets are the names of what the other pods of an app are on, of whose budget one of the names takes a part:
// its pod may not be evicted, and none comes in its place.
func (w *world) kinOfBudgets(names []string) (out []string) {
	for _, name := range names {
		p := w.api.pods[name]
		if p == nil || p.app.budget == nil {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(w.api.claims)) {
			c := w.api.claims[key]
			if n := w.api.nodeOf(c); n != nil && slices.ContainsFunc(w.api.podsOn(n.Name),
				func(other *pod) bool { return other.app == p.app }) {
				out = append(out, w.kinOf(c)...)
			}
		}
	}
	return out
}

// checkWatchGoesOn: an invocation that met what nobody may write stays for the others as long as it may: for claims
// that end, and for pods that wait for a node. One whose passes have taken long ends when another would not fit.
func checkWatchGoesOn(w *world, s invocationReturned) []string {
	inv, d := s.inv, w.network.denied
	stay := min(w.plan.stay, inv.fn.Timeout-5*time.Second) - w.plan.skew - seconds - inv.longestPass
	if d == nil || d.name == "" || w.trouble || !inv.denied || time.Since(inv.started) >= stay ||
		w.lambda.runningInvocations(inv.fn) > 1 {
		return nil
	}
	switch inv.fn.Name {
	case "lifecycle":
		for _, name := range slices.Sorted(maps.Keys(w.api.claims)) {
			c := w.api.claims[name]
			if age := time.Since(c.Deleting); !c.Deleting.IsZero() && age > late && age < 4*time.Minute &&
				!slices.Contains(w.kinOf(c), d.name) {
				return broken("%s ends after %s while claim %s is being deleted, because of %s", inv,
					time.Since(inv.started), name, d.name)
			}
		}
	case "provision":
		for _, key := range slices.Sorted(maps.Keys(w.api.pods)) {
			if p := w.api.pods[key]; p.NodeName == "" && !p.app.daemon && time.Since(p.Created) > late &&
				!cannotPlace(w, p) && p.NodeSelector[labelTeam] != d.name {
				return broken("%s ends after %s while pod %s waits, because of %s", inv, time.Since(inv.started), key,
					d.name)
			}
		}
	}
	return nil
}
