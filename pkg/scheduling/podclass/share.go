package podclass

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/fairshare"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
)

// The processor time that planning for a class of hostile pods takes before anything is searched for, with the built-in
// catalog and one pool of all its types. With these numbers others wait two seconds at most for 1,000 pods of any kind
// of BenchmarkHostileTenant: a fifth to all of a second for each kind, searches included. The longer times are
// multiples of that of a rule, since measurements are no more exact.
const (
	// workPerRule is that of a spread constraint or a term of pod affinity, once more where a term selects namespaces,
	// and of an entry of a node selector, which leaves fewer types to the other entries.
	workPerRule = 100 * time.Microsecond
	// workPerClass is that of a class that asks for CPU and memory alone.
	workPerClass = 2 * workPerRule
	// workPerRequirement is that of a requirement of node affinity, for each term: it is tried on each type.
	workPerRequirement = workPerClass + workPerRule
	// workPerKey is that of a topology key other than host and zone, whose domains are found on all nodes and types,
	// and of a host port, which is compared with those of others.
	workPerKey = 2 * workPerRequirement
	// workPerAdmission is the least work of a class whose selectors, affinity and tolerations are like those of none
	// before it: they are tried on each offering. One selector that no offering meets took 1.9 ms. A preference for
	// values of labels counts twice that: all pods are packed once more without it where it is not met. Others wait
	// 1.5 s for preferences that nothing meets, 3.1 s with half of that, and 0.2 s with double, which leaves more of
	// them to later passes.
	workPerAdmission = 2 * workPerKey
	// workPerPreference is that of a requirement that is preferred, which is tried on few types, of a toleration, and
	// of a resource for each class, shared by the classes that ask for it: it is a dimension of all room.
	workPerPreference = 20 * time.Microsecond
	// workPerWord is that of a value of a requirement, and of a preferred rule for each rule: preferred rules make
	// another plan with all rules.
	workPerWord = 3 * time.Microsecond
)

// turns is after how many turns each namespace was among the first.
const turns = 8

// ShareWork sets classes aside where all of them are more work than a pass may take, or those of a namespace are more
// than others are to wait for. Namespaces get the same, as far as they need it; within one, classes that are little
// work come first and virtual pods last. Of thousands of namespaces the share of one may be less than any of its
// classes is: what no share is enough for is given to them in turn, another one first in each.
func (cs *Classes) ShareWork(rules cluster.Settings, turn uint64) SetAside {
	budget := time.Duration(rules.DemandBudget()) * time.Millisecond
	work, sums := cs.MeasureWork(), map[string]time.Duration{}
	for i, class := range cs.List {
		sums[class.Pod.Namespace] += work[i]
	}
	names := slices.Sorted(maps.Keys(sums))
	wants := make([]time.Duration, len(names))
	for i, name := range names {
		wants[i] = sums[name]
		if most := time.Duration(rules.NamespaceMilliseconds) * time.Millisecond; most > 0 && len(names) > 1 {
			wants[i] = min(wants[i], most)
		}
	}
	left, most, spare := map[string]time.Duration{}, map[string]time.Duration{}, budget
	for i, share := range fairshare.MaxMin(budget, wants) {
		left[names[i]], most[names[i]] = share, wants[i]
	}
	served := map[string]bool{}
	var rest []int
	for _, i := range cs.lightestFirst(work) {
		ns := cs.List[i].Pod.Namespace
		if left[ns] -= work[i]; left[ns] < 0 {
			rest = append(rest, i)
			continue
		}
		served[ns], spare = true, spare-work[i]
	}
	out := SetAside{}
	for _, i := range cs.inTurn(rest, names, turn) {
		class := cs.List[i]
		ns := class.Pod.Namespace
		if !served[ns] && work[i] <= min(spare, most[ns]) {
			most[ns], spare = most[ns]-work[i], spare-work[i]
			continue
		}
		why := fmt.Sprintf("the pods of namespace %s that wait are about %d ms of planning, more than its share of one "+
			"pass: those that ask for most are left out", ns, sums[ns].Milliseconds())
		for _, pod := range class.Pods {
			out[pod] = why
		}
	}
	return out
}

// inTurn are these classes, which are the lightest first of each namespace, by namespace: in each turn another one is
// first.
func (cs *Classes) inTurn(classes []int, names []string, turn uint64) []int {
	place, n := map[string]int{}, len(names)
	for i, name := range names {
		place[name] = (i + int(turn%turns)*(n/turns+1)) % n
	}
	of := func(i int) int { return place[cs.List[i].Pod.Namespace] }
	slices.SortStableFunc(classes, func(a, b int) int { return cmp.Compare(of(a), of(b)) })
	return classes
}

// lightestFirst are the classes in the order in which those of a namespace take its share.
func (cs *Classes) lightestFirst(work []time.Duration) []int {
	order := make([]int, len(work))
	for i := range order {
		order[i] = i
	}
	virtual := func(i int) int {
		if cs.List[i].Pod.Virtual {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(virtual(a), virtual(b)), cmp.Compare(work[a], work[b]))
	})
	return order
}

// MeasureWork estimates the processor time that planning for each class takes.
func (cs *Classes) MeasureWork() []time.Duration {
	users := map[string]time.Duration{}
	for _, class := range cs.List {
		for _, e := range class.Pod.Need.Extended {
			users[e.Name]++
		}
	}
	out, seen := make([]time.Duration, len(cs.List)), map[uint64]bool{cs.Signature.sumNodesAsked(&cluster.Pod{}): true}
	for i, class := range cs.List {
		out[i] = workOf(&class.Pod)
		if sum := cs.Signature.sumNodesAsked(&class.Pod); !seen[sum] {
			seen[sum], out[i] = true, max(out[i], workPerAdmission)+2*workPerAdmission*countWishes(&class.Pod)
		}
		for _, e := range class.Pod.Need.Extended {
			out[i] += workPerPreference * time.Duration(len(cs.List)) / users[e.Name]
		}
	}
	return out
}

func namesValues(r requirements.Requirement) bool { return !r.Not && len(r.Values) > 0 }

// countWishes counts the pod's preferences for values of labels.
func countWishes(p *cluster.Pod) (n time.Duration) {
	for _, t := range p.NodePrefers {
		if slices.ContainsFunc(t.Requirements, namesValues) {
			n++
		}
	}
	return n
}

// workOf estimates the processor time that planning for a class of such pods takes, without its resources.
func workOf(p *cluster.Pod) time.Duration {
	terms, preferred, values := 0, 0, len(p.NodeSelector)
	count := func(n *int, rs []requirements.Requirement) {
		*n += len(rs)
		for i := range rs {
			values += len(rs[i].Values)
		}
	}
	for _, t := range p.NodeAffinity {
		count(&terms, t)
	}
	for _, z := range p.VolumeZones {
		count(&terms, z)
	}
	// each term is tried with each alternative of the volumes
	terms = max(terms, terms*min(len(p.NodeAffinity), 1)*max(1, len(p.VolumeZones)))
	for _, t := range p.NodePrefers {
		count(&preferred, t.Requirements)
	}
	soft := len(p.Prefers) + len(p.Avoids)
	rules := soft + len(p.Spread) + len(p.Affinity) + len(p.AntiAffinity)
	for _, c := range p.Spread {
		if c.Soft {
			soft++
		}
	}
	far := 0
	for _, t := range slices.Concat(p.Affinity, p.AntiAffinity, termsOf(p.Prefers), termsOf(p.Avoids)) {
		if t.NamespaceSelector != nil {
			far++
		}
	}
	keys := map[string]bool{}
	AddTopologyKeys(p, keys)
	delete(keys, LabelHost)
	delete(keys, instancetypes.LabelZone)
	of := func(n int, each time.Duration) time.Duration { return time.Duration(n) * each }
	return workPerClass + of(terms, workPerRequirement) + of(len(p.NodeSelector)+rules+far, workPerRule) +
		of(len(keys)+len(p.HostPorts), workPerKey) + of(preferred+len(p.Tolerations), workPerPreference) +
		of(values+soft*(soft+rules), workPerWord)
}

func termsOf(all []cluster.WeightedAffinityTerm) []cluster.AffinityTerm {
	return lists.Of(all, func(t cluster.WeightedAffinityTerm) cluster.AffinityTerm { return t.Term })
}

// leaveOut takes the pods that are set aside out of list, with their reasons.
func (a SetAside) leaveOut(list []*cluster.Pod) (kept []*cluster.Pod, out []plan.Unplaced) {
	if len(a) == 0 {
		return list, nil
	}
	for _, p := range list {
		if why, aside := a[p.Key()]; aside {
			out = append(out, plan.Unplaced{Pod: p.Key(), Why: []string{why}})
		} else {
			kept = append(kept, p)
		}
	}
	return kept, out
}

// ReadClasses groups the pods of the snapshot that need a place, without those that are set aside. The teller tells
// of stages about these classes.
func ReadClasses(s cluster.Snapshot, all []cluster.StateNode, aside SetAside) (*Classes, StageTeller) {
	cs := &Classes{Shapes: map[string]int{}, Limits: cluster.ReadVolumeLimits(all), Aside: aside}
	stages := StageTeller{s.Follower, cs}
	list, out := takeUnmodelled(findPendingPods(s, all))
	list, left := aside.leaveOut(list)
	cs.Unmodelled = slices.Concat(out, left)
	stages.Tell(cluster.StageWhole, nil, "")
	cs.Signature = Signature{labels: selectedLabelKeys(s), shared: sharedVolumes(s.Pods),
		moving: nodesBeingReplaced(all)}
	cs.List = groupPodClasses(list, cs.Signature)
	for _, class := range cs.List {
		stages.Tell(cluster.StageDemand, class, "")
	}
	cs.Sharing = slices.ContainsFunc(cs.List, func(class *Class) bool { return len(class.Volumes.Shared) > 0 })
	cs.Waiting = make(map[*cluster.Pod]bool, len(list))
	for _, p := range list {
		cs.Waiting[p] = true
	}
	return cs, stages
}
