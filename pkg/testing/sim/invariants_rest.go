package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/testing/objects"
)

// classProblems lists what must not be about classes at rest.
func classProblems(w *world) (bad []string) {
	for _, name := range slices.Sorted(maps.Keys(w.api.classes)) {
		c := w.api.classes[name]
		switch d := nodeclass.DescribeClass(c); {
		case c.DeletionTimestamp != nil:
			bad = append(bad, "class "+name+" is still being deleted")
		case !d.Ready || d.Unseen:
			k, _ := c.StatusConditions().Get(awsv1.ConditionValidationSucceeded)
			bad = append(bad, fmt.Sprintf("class %s is not ready: %s %s", name, d.Message, k.Message))
		case c.Status.AMIs[0].ID != fmt.Sprintf("ami-%d", w.account.image):
			bad = append(bad, fmt.Sprintf("class %s has image %s, the newest is ami-%d", name, c.Status.AMIs[0].ID,
				w.account.image))
		case c.Annotations[awsv1.AnnotationHash] != c.Hash(caBundle):
			bad = append(bad, "class "+name+" has an old hash")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.api.claims)) {
		c := w.api.claims[name]
		if w.trial == nil && driftReason(w, c) != "" && !c.Is(v1.ConditionDrifted) {
			bad = append(bad, "claim "+name+" has drifted, and does not say so")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.api.nodes)) {
		if w.api.nodes[name].ReadySince.Add(late).After(w.account.looked) {
			bad = append(bad, "refresh has not learned from node "+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.account.profiles)) {
		if w.api.classes[name[len("profile-"):]] == nil {
			bad = append(bad, name+" belongs to no class")
		}
	}
	return bad
}

// driftReason says what of a claim's node is not what its pool and class ask for now, or nothing.
func driftReason(w *world, c *claim) string {
	pool, _ := w.api.poolOf(c.Pool)
	k, limits := pool.Requirements.Get(labelCapacity)
	switch {
	case c.ImageID != "" && c.ImageID != fmt.Sprintf("ami-%d", w.account.image):
		return "image " + c.ImageID
	case c.Annotations[awsv1.AnnotationHash] != w.api.classes[c.Class].Annotations[awsv1.AnnotationHash]:
		return "class"
	case c.Annotations[v1.AnnotationNodePoolHash] != pool.Hash:
		return "template"
	case limits && !slices.Contains(k.Values, c.Labels[labelCapacity]):
		return c.Labels[labelCapacity]
	}
	return ""
}

// driftProblems are the nodes that have drifted and are still there, unless the volumes of a pod keep it from ever
// being scheduled again.
func driftProblems(w *world) (bad []string) {
	if !w.plan.drifts {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(w.api.claims)) {
		c := w.api.claims[name]
		if why := driftReason(w, c); why != "" && !holdsPodForEver(w, c) {
			bad = append(bad, fmt.Sprintf("claim %s has drifted (%s), and is not replaced", name, why))
		}
	}
	return bad
}

// holdsPodForEver reports whether a pod on the claim's node could not be scheduled anew: its volumes are where its
// spread does not let it be.
func holdsPodForEver(w *world, c *claim) bool {
	n := w.api.nodeOf(c)
	pool, ok := w.api.poolOf(c.Pool)
	if n == nil || !ok {
		return false
	}
	return slices.ContainsFunc(w.api.podsOn(n.Name), func(p *pod) bool {
		p.NodeName = "" // it does not stand in its own way
		defer func() { p.NodeName = n.Name }()
		return volumesApart(w, p, pool)
	})
}

// restInvariant is a rule that holds once everything has come to rest.
type restInvariant struct {
	name  string
	check func(w *world) []string // what is wrong, in sentences
}

// restInvariants returns the invariants of all parts.
func restInvariants() []restInvariant {
	return []restInvariant{
		{"every claim is in service and has an instance of its own", claimProblems},
		{"every instance belongs to a claim, is named and in order", instanceProblems},
		{"every node belongs to a claim and takes pods", nodeProblems},
		{"every pod runs that has room", podProblems},
		{"pools say how many nodes they have", countProblems},
		{"static pools have as many nodes as they are to have", staticProblems},
		{"classes are ready, and what was made for them is theirs", classProblems},
		{"nodes that drifted are replaced", driftProblems},
		{"volumes are attached to nodes that exist", volumeProblems},
		{"buffers of stopped capacity are full, and nothing is kept beside", bufferProblems},
	}
}

// restProblems lists what must not be when everything has come to rest, sorted.
func (w *world) restProblems() (bad []string) {
	for _, i := range restInvariants() {
		bad = append(bad, i.check(w)...)
	}
	slices.Sort(bad)
	return bad
}

// claimsByInstance are the names of claims by provider id.
func claimsByInstance(w *world) map[string]string {
	owners := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(w.api.claims)) {
		owners[w.api.claims[name].ProviderID] = name
	}
	return owners
}

// claimProblems are claims that are not in service, or not alone with their instance.
func claimProblems(w *world) (bad []string) {
	alive, idle, owners := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, m := range w.ec2.livingInstances() {
		idle[m.ProviderID()] = isIdle(w, m)
		alive[m.ProviderID()] = m.State == "running" || idle[m.ProviderID()]
	}
	for _, name := range slices.Sorted(maps.Keys(w.api.claims)) {
		c := w.api.claims[name]
		switch {
		case !c.Deleting.IsZero():
			bad = append(bad, fmt.Sprintf("claim %s is still being deleted", name))
		case c.ProviderID == "":
			bad = append(bad, fmt.Sprintf("claim %s has no instance", name))
		case owners[c.ProviderID] != "":
			bad = append(bad, fmt.Sprintf("claims %s and %s have the same instance", owners[c.ProviderID], name))
		case !c.Is("Initialized") && !idle[c.ProviderID]:
			bad = append(bad, fmt.Sprintf("claim %s is not initialized", name))
		}
		if l := interruption.LeaveOf(c.Claim); l.Cause != "" && time.Now().Before(l.Until) && !w.api.limitReached() &&
			!holdsPodApart(w, c) {
			bad = append(bad, fmt.Sprintf("claim %s is to be left", name))
		}
		if c.ProviderID != "" && !alive[c.ProviderID] {
			bad = append(bad, fmt.Sprintf("claim %s has %s, which does not run", name, c.ProviderID))
		}
		owners[c.ProviderID] = name
	}
	return bad
}

// instanceProblems are instances that belong to no claim, have no name, or are about to go.
func instanceProblems(w *world) (bad []string) {
	owners := claimsByInstance(w)
	for _, m := range w.ec2.livingInstances() {
		owner := owners[m.ProviderID()]
		if owner == "" {
			bad = append(bad, fmt.Sprintf("instance %s of claim %s belongs to no claim", m.ID, m.Claim))
		} else if c := w.api.claims[owner]; c.Labels[instancetypes.LabelType] != m.Type ||
			c.Labels[instancetypes.LabelZone] != m.Zone ||
			c.Labels[instancetypes.LabelCapacityType] != m.CapacityType {
			bad = append(bad, fmt.Sprintf("claim %s does not say that it is a %s %s in %s", owner, m.CapacityType,
				m.Type, m.Zone))
		}
		if c := w.api.claims[owner]; m.noticed && (c == nil || !c.Deleting.IsZero() || !holdsPodApart(w, c)) {
			bad = append(bad, fmt.Sprintf("EC2 is about to take %s", m.ID))
		}
		if !m.ill.since.IsZero() && m.ill.until.IsZero() {
			bad = append(bad, fmt.Sprintf("instance %s fails a status check", m.ID))
		}
		if !m.tagged && !isIdle(w, m) {
			bad = append(bad, fmt.Sprintf("instance %s has no name", m.ID))
		}
	}
	return bad
}

// podProblems are pods that do not run although there is, or may be made, a node for them.
func podProblems(w *world) (bad []string) {
	for _, key := range slices.Sorted(maps.Keys(w.api.pods)) {
		if p := w.api.pods[key]; !p.Ready && !cannotPlace(w, p) {
			bad = append(bad, fmt.Sprintf("pod %s on %q does not run%s", key, p.NodeName, whyNot(w, p)))
		}
	}
	return bad
}

// volumeProblems are volumes that are attached to nodes that there are not.
func volumeProblems(w *world) []string { return w.volumes.stuck(w.api.nodes) }

// nodeProblems are nodes that belong to no claim, or take no pods.
func nodeProblems(w *world) (bad []string) {
	owners := claimsByInstance(w)
	for _, name := range slices.Sorted(maps.Keys(w.api.nodes)) {
		n := w.api.nodes[name]
		if slices.ContainsFunc(n.Taints, cluster.Taint.IsNomination) {
			bad = append(bad, fmt.Sprintf("node %s is held", name))
		}
		if slices.ContainsFunc(n.Taints, cluster.Taint.IsFailedRevision) {
			bad = append(bad, fmt.Sprintf("node %s is rolled back and stays", name))
		}
		if slices.ContainsFunc(n.Taints, cluster.Taint.IsPreviousRevision) {
			bad = append(bad, fmt.Sprintf("node %s takes no pods while nothing is drained", name))
		}
		if n.Deleting.IsZero() && slices.Contains(n.Taints, objects.DisruptedTaint()) {
			bad = append(bad, fmt.Sprintf("node %s takes no pods and stays", name))
		}
		if n.machine != nil && !n.machine.foreign && (owners[n.ProviderID] == "" || !n.Ready || !n.Deleting.IsZero()) {
			bad = append(bad, fmt.Sprintf("node %s: claim %q, ready %t, deleting %t", name, owners[n.ProviderID],
				n.Ready, !n.Deleting.IsZero()))
		}
	}
	return bad
}

// countProblems are pools whose status has another number of nodes than they have.
func countProblems(w *world) (bad []string) {
	nodes := map[string]int64{}
	for _, c := range w.api.claims {
		if c.ProviderID != "" && c.Deleting.IsZero() {
			nodes[c.Pool]++
		}
	}
	for _, p := range w.api.pools {
		if have := p.Counted.Get(string(v1.LimitNodes)); !p.Uncounted && have != nodes[p.Name] {
			bad = append(bad, fmt.Sprintf("pool %s says that it has %d nodes and has %d", p.Name, have, nodes[p.Name]))
		}
	}
	return bad
}

// patience is the longest time that a pod waits until a scheduled provision has looked at it in vain.
const patience = 150 * time.Second

// remainingObjects lists what exists of ours.
func remainingObjects(w *world) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(w.api.claims)) {
		out = append(out, "claim "+name)
	}
	for _, name := range slices.Sorted(maps.Keys(w.api.nodes)) {
		if n := w.api.nodes[name]; n.machine != nil && !n.machine.foreign {
			out = append(out, "node "+name)
		}
	}
	for _, m := range w.ec2.livingInstances() {
		out = append(out, "instance "+m.ID)
	}
	return out
}

// staticProblems says whether the pool has another number of nodes than it is to have.
func staticProblems(w *world) []string {
	p := w.api.staticPool()
	if p == nil {
		return nil
	}
	have := int64(0)
	for _, c := range w.api.claims {
		if c.Pool == p.Name {
			have++
		}
	}
	if have == p.Replicas {
		return nil
	}
	return []string{fmt.Sprintf("pool %s has %d nodes and is to have %d", p.Name, have, p.Replicas)}
}
