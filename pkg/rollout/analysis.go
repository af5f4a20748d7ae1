package rollout

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

const (
	// mostChanceAtEnd is the chance, under which as many bad pods on new nodes count as no accident when a step has
	// waited for more evidence. mostChance is it for each pass before, of which there are many. A chance above
	// doubtfulChance is worth no wait.
	mostChance      = 0.001
	mostChanceAtEnd = 0.01
	doubtfulChance  = 0.1
	// unreadyFor is the time for which a pod on a node may be unready before that counts against the node.
	unreadyFor = 2 * time.Minute
	// mostRefunds caps the new nodes that EC2 may take before they prove anything, for which others are tried.
	mostRefunds = 3
)

// finding holds what the analysis found: why the revision failed, if it did, and all of it in words.
type finding struct {
	failed string
	words  []string

	stalls string // why no step is taken, however long that lasts
	awaits string // the evidence that may still come, empty where there is enough
	bad    string // why the revision fails when no more evidence comes

	compared []cluster.WorkloadHealth
}

// analyze judges the revision that is tried by its nodes and their pods.
func analyze(s cluster.Snapshot, r cluster.Rollout, tried []cluster.TriedNode) finding {
	var f finding
	f.judgeAlarms(r, len(tried) > 0)
	f.judgeNodes(s, r, tried)
	f.judgePods(s, r)
	return f
}

func (f *finding) fail(format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	if f.words = append(f.words, why); f.failed == "" {
		f.failed = why
	}
}

// judgeAlarms fails for an alarm that fires. One that does so before any node has the revision is not its fault: that
// waits for the end of it, as it does while nobody knows the states of alarms.
func (f *finding) judgeAlarms(r cluster.Rollout, tried bool) {
	if r.AlarmsUnread != "" {
		f.stalls = "waits for alarms that can be read"
		f.words = append(f.words, "alarms cannot be read: "+r.AlarmsUnread)
	}
	for _, a := range r.Alarms {
		switch {
		case a.State != cluster.AlarmFires:
		case tried:
			f.fail("CloudWatch alarm %s fires", a.Name)
		default:
			f.stalls = "waits for the end of CloudWatch alarm " + a.Name + ", which fires before any node has the revision"
		}
	}
}

// alarmProblem says which alarms of the rollout there are not, and why they cannot be read.
func alarmProblem(r cluster.Rollout) string {
	if r.AlarmsUnread != "" {
		return "spec.analysis.alarms: " + r.AlarmsUnread
	}
	missing := lists.Where(r.Alarms, func(a cluster.Alarm) bool { return a.State == "" })
	if len(missing) == 0 {
		return ""
	}
	names := lists.Of(missing, func(a cluster.Alarm) string { return a.Name })
	return "spec.analysis.alarms: there is no alarm " + strings.Join(names, ", ") + " in this region and account"
}

// judgeNodes fails for nodes that do not become initialized or stay Ready in time, and for conditions that they must
// not have.
func (f *finding) judgeNodes(s cluster.Snapshot, r cluster.Rollout, tried []cluster.TriedNode) {
	at := map[string]cluster.StateNode{}
	for _, node := range s.StateNodes() {
		if node.Claim != nil {
			at[node.Claim.Name] = node
		}
	}
	good := 0
	for _, t := range tried {
		node, there := at[t.Name]
		switch {
		case t.State == cluster.TriedFailed:
			f.fail("node of NodeClaim %s ended before it was initialized", t.Name)
		case !there || !node.Claim.Deleting.IsZero():
		case t.State == cluster.TriedStarting:
			since := node.Claim.Condition(api.ConditionLaunched).Since
			if node.Claim.Is(api.ConditionLaunched) && !s.Now.Before(since.Add(r.ReadyWithin)) {
				f.fail("node of NodeClaim %s is not initialized within %s", t.Name, r.ReadyWithin)
			}
		case node.Node != nil && !node.Node.Ready && !s.Now.Before(node.Node.ReadySince.Add(r.ReadyWithin)):
			f.fail("node %s is not Ready for %s", node.Node.Name, r.ReadyWithin)
		case node.Node != nil:
			if bad := badCondition(*node.Node, r.NodeConditions); bad != "" {
				f.fail("node %s has the condition %s", node.Node.Name, bad)
			} else if node.Node.Ready {
				good++
			}
		}
	}
	f.words = append(f.words, fmt.Sprintf("%d of %d new nodes are initialized and Ready", good, len(tried)))
}

func badCondition(n cluster.Node, unwanted []cluster.Condition) string {
	for _, k := range n.Conditions {
		same := func(u cluster.Condition) bool { return u.Type == k.Type && u.Status == k.Status }
		if slices.ContainsFunc(unwanted, same) {
			return k.Type + "=" + k.Status
		}
	}
	return ""
}

// CountPods counts the pods of each controller on new nodes and on old ones of the rollout, and those of them that
// crashed, were killed for their memory, or stay unready. Controllers with pods on one side only are left out, unless
// a revision is tried and pods that leave old nodes are to be remembered.
func CountPods(s cluster.Snapshot, r cluster.Rollout) (out []cluster.WorkloadHealth) {
	if _, refused := ClassOf(s, r); refused != "" || r.Status.Revision == "" {
		return nil
	}
	isNew, steady := initializedNodes(s, r), steadyNodes(s)
	byUID := map[string]*cluster.WorkloadHealth{}
	for _, o := range r.Status.OldPods {
		byUID[o.Controller] = &cluster.WorkloadHealth{Controller: o.Controller}
	}
	for _, p := range s.Pods {
		onNew, mine := isNew[p.NodeName]
		if p.Controller == "" || !mine || p.Terminating() || p.Virtual {
			continue
		}
		bad := faresBadly(p, s.Now)
		if (!bad || !steady[p.NodeName]) && !p.Ready && p.Phase != "Succeeded" {
			continue // it has shown nothing yet, or its node has taken it along
		}
		if byUID[p.Controller] == nil {
			byUID[p.Controller] = &cluster.WorkloadHealth{Controller: p.Controller}
		}
		w := byUID[p.Controller]
		w.Sample = cmp.Or(w.Sample, p.Key())
		countPod(w, onNew, bad)
	}
	for _, w := range byUID {
		if w.New > 0 && w.Old > 0 || isUnderWay(r.Status) {
			out = append(out, *w)
		}
	}
	slices.SortFunc(out, func(a, b cluster.WorkloadHealth) int { return strings.Compare(a.Controller, b.Controller) })
	return out
}

// initializedNodes are the initialized nodes of the rollout, each with whether it has the revision that is tried.
func initializedNodes(s cluster.Snapshot, r cluster.Rollout) map[string]bool {
	isNew := map[string]bool{}
	revision := revisionOf(r)
	for _, c := range claimsOf(s, r) {
		if c.NodeName != "" && c.Is(api.ConditionInitialized) {
			isNew[c.NodeName] = revision(c) == r.Status.Revision
		}
	}
	return isNew
}

func countPod(w *cluster.WorkloadHealth, isNew, isBad bool) {
	bad := 0
	if isBad {
		bad = 1
	}
	if isNew {
		w.New, w.NewBad = w.New+1, w.NewBad+bad
	} else {
		w.Old, w.OldBad = w.Old+1, w.OldBad+bad
	}
}

// steadyNodes returns the nodes that are Ready and do not go. A pod of another that is unready, or failed as the node
// was shut down, shows nothing: those of DaemonSets stay on a node until its instance ends.
func steadyNodes(s cluster.Snapshot) map[string]bool {
	out := map[string]bool{}
	for _, node := range s.StateNodes() {
		if node.Claim != nil && node.Node != nil {
			out[node.Node.Name] = node.Node.Ready && node.Claim.Deleting.IsZero()
		}
	}
	return out
}

// faresBadly reports whether the pod crashed, was killed for its memory, failed, or is unready for too long.
func faresBadly(p cluster.Pod, now time.Time) bool {
	since := p.Created
	for _, at := range []time.Time{p.Started, p.UnreadySince} {
		if at.After(since) {
			since = at
		}
	}
	return p.Trouble != "" || p.Phase == "Failed" ||
		p.Phase != "Succeeded" && !p.Ready && !now.Before(since.Add(unreadyFor))
}

// judgePods compares the pods of each controller on new nodes with its pods on old ones. It fails when so many bad ones
// on new nodes have a chance of at most mostChance, were new nodes as good as old ones.
func (f *finding) judgePods(s cluster.Snapshot, r cluster.Rollout) {
	f.compared = compared(r, s.Now)
	sum := sumOf(f.compared)
	text := fmt.Sprintf("%d of %d pods on new nodes fare badly, %d of %d of the same workloads on old nodes", sum.NewBad,
		sum.New, sum.OldBad, sum.Old)
	if sum.New < r.MinPods {
		if mayBeCompared(s, r) {
			f.awaits = fmt.Sprintf("pods that can be compared: %d of %d are on new nodes", sum.New, r.MinPods)
		}
		if sum.New > 0 {
			f.words = append(f.words, fmt.Sprintf("%s; fewer than %d are not compared", text, r.MinPods))
		}
		return
	}
	chance := chanceOf(f.compared)
	text = fmt.Sprintf("%s: a chance of %.4f", text, chance)
	if chance <= mostChance {
		f.fail("%s", text)
		return
	}
	f.words = append(f.words, text)
	if f.awaits = arriving(s, r); chance <= doubtfulChance {
		f.awaits = "more pods: " + text
	}
	if chance <= mostChanceAtEnd {
		f.bad = text
	}
}

// mayBeCompared reports whether old nodes of the rollout run pods whose controllers may have some on new nodes, too.
func mayBeCompared(s cluster.Snapshot, r cluster.Rollout) bool {
	revision := revisionOf(r)
	old := map[string]bool{} // nodes
	for _, c := range claimsOf(s, r) {
		if c.NodeName != "" && c.Deleting.IsZero() && revision(c) != r.Status.Revision {
			old[c.NodeName] = true
		}
	}
	return slices.ContainsFunc(s.Pods, func(p cluster.Pod) bool {
		return p.Controller != "" && old[p.NodeName] && !p.Terminating() && !p.Virtual
	})
}

// chanceOf is the chance of more bad pods on new nodes than there are, and half of that of as many, given how many bad
// ones each workload has in all and were each as likely on any node. The bad ones of a workload on new nodes are
// hypergeometric then. Half of it, the mid-p value, because few pods make few different outcomes: with all of it the
// test would be far stricter than it says.
func chanceOf(all []cluster.WorkloadHealth) float64 {
	total, at := []float64{1}, 0
	for _, w := range all {
		at += w.NewBad
		bad, n := w.NewBad+w.OldBad, w.New+w.Old
		low, high := max(0, bad-w.Old), min(bad, w.New)
		one := make([]float64, high+1)
		for k := low; k <= high; k++ {
			one[k] = math.Exp(logChoose(w.New, k) + logChoose(w.Old, bad-k) - logChoose(n, bad))
		}
		next := make([]float64, len(total)+high)
		for i, a := range total {
			for k, b := range one {
				next[i+k] += a * b
			}
		}
		total = next
	}
	sum := 0.0
	for i := at; i < len(total); i++ {
		sum += total[i]
	}
	if at < len(total) {
		sum -= total[at] / 2
	}
	return min(sum, 1)
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
