package accept

import (
	"fmt"
	"joiner.sh/pkg/model/lists"
	"slices"
	"strings"
	"time"
)

// Action is the act of a step. Repeating one is harmless, but for the notice, which a claim is deleted by once.
type Action string

// The actions of a run.
const (
	DoNothing Action = ""
	DoMake    Action = "make the namespace, the EC2NodeClass and the NodePool"
	DoPods    Action = "make the pods"
	DoFewer   Action = "take most of the pods away"
	DoNotice  Action = "send the spot notice"
	DoNoPods  Action = "take all pods away"
	DoRemove  Action = "remove the pods, the NodePool and the EC2NodeClass"
	DoForget  Action = "remove the namespace"
)

// Observation holds what there is of a run at one time.
type Observation struct {
	ClassReady, PoolReady bool
	Why                   string // of what is not ready
	Namespace             bool
	Pods                  []PodState
	Claims                []Claim
	Objects               []string // Deployment, NodePool and EC2NodeClass that the cluster still has
	Strays                []string // pods of others on the run's nodes; only of a deep look
	Left                  []string // in AWS; only of a deep look
}

// PodState is a pod of the run.
type PodState struct {
	Name, Node string
	Running    bool
	Leaving    bool
}

// Claim is a NodeClaim of the run.
type Claim struct {
	Name, Instance, Node string
	InService            bool // registered and initialized
	Leaving              bool
}

// Memory holds what a run knows of its earlier steps.
type Memory struct {
	Peak   int   // nodes with all pods
	Victim Claim // whose instance gets the notice
}

// Step is one step: what it does, and what it then waits for.
type Step struct {
	Name  string        // as it stands in the output
	Do    Action        // the action that it begins with
	Limit time.Duration // time after which it fails
	Deep  bool          // it looks at AWS and at the pods of others each time
	// Pick chooses, before each try of the action, what it is about; nil: there is nothing to choose.
	Pick func(m Memory, o Observation) (Memory, bool)
	// Until says what there is, and whether it is what the step waits for.
	Until func(m Memory, o Observation) (saw string, done bool)
	// Note returns what later steps have to know; nil: nothing.
	Note func(m Memory, o Observation) Memory
}

// Steps returns the steps of a whole run, the main job first and the cleaning last.
func Steps(notice bool) []Step {
	all := []Step{
		{Name: "NodePool ready", Do: DoMake, Limit: 10 * time.Minute, Until: poolReady},
		{Name: "pods pending", Do: DoPods, Limit: 2 * time.Minute, Until: func(_ Memory, o Observation) (string, bool) {
			return fmt.Sprintf("%d of %d pods", len(o.Pods), manyPods), len(o.Pods) >= manyPods
		}},
		{Name: "nodes in service", Limit: 15 * time.Minute, Until: nodesInService},
		{Name: "pods running", Limit: 10 * time.Minute, Until: podsRunning(manyPods),
			Note: func(m Memory, o Observation) Memory { m.Peak = len(o.Claims); return m }},
		{Name: "fewer pods, fewer nodes", Do: DoFewer, Limit: 20 * time.Minute, Until: fewerNodes},
	}
	if notice {
		all = append(all, Step{Name: "spot notice", Do: DoNotice, Limit: 15 * time.Minute, Until: replaced,
			Pick: func(m Memory, o Observation) (_ Memory, found bool) {
				m.Victim, found = chooseVictim(o)
				return m, found
			}})
	}
	return append(all, Step{Name: "no pods, no nodes", Do: DoNoPods, Limit: 20 * time.Minute, Until: noNodes})
}

// CleanSteps returns the steps that remove a run, whatever it has got to, but for the namespace, which stays.
func CleanSteps() []Step {
	return []Step{
		{Name: "removal", Do: DoRemove, Limit: 15 * time.Minute, Until: func(_ Memory, o Observation) (string, bool) {
			saw := fmt.Sprintf("%d claims, %s", len(o.Claims), listOrNone(o.Objects))
			return saw, len(o.Claims) == 0 && len(o.Objects) == 0
		}},
		{Name: "nothing left in AWS", Limit: 10 * time.Minute, Deep: true, Until: func(_ Memory, o Observation) (string, bool) {
			return listOrNone(o.Left), len(o.Left) == 0
		}},
	}
}

// ForgetSteps remove the last of a run.
func ForgetSteps() []Step {
	return []Step{{Name: "namespace removed", Do: DoForget, Limit: 5 * time.Minute, Until: func(_ Memory, o Observation) (string, bool) {
		return fmt.Sprintf("there: %t, %d pods", o.Namespace, len(o.Pods)), !o.Namespace
	}}}
}

func listOrNone(all []string) string {
	if len(all) == 0 {
		return "nothing left"
	}
	return strings.Join(sortedTexts(all), ", ")
}

func poolReady(_ Memory, o Observation) (string, bool) {
	if o.ClassReady && o.PoolReady {
		return "ready", true
	}
	return o.Why, false
}

// nodesInService wants a node for every claim.
func nodesInService(_ Memory, o Observation) (string, bool) {
	n := lists.Count(o.Claims, func(c Claim) bool { return c.InService && !c.Leaving })
	return fmt.Sprintf("%d of %d nodes", n, len(o.Claims)), n > 0 && n == len(o.Claims)
}

// podsRunning wants so many pods to run on the run's own nodes, and no more to be there.
func podsRunning(want int) func(Memory, Observation) (string, bool) {
	return func(_ Memory, o Observation) (string, bool) {
		n := runningOn(o, func(c Claim) bool { return true })
		return fmt.Sprintf("%d of %d pods on %d nodes", n, want, len(o.Claims)), n == want && len(o.Pods) == want
	}
}

// runningOn counts pods that run on nodes of such claims.
func runningOn(o Observation, of func(Claim) bool) int {
	n := 0
	for _, p := range o.Pods {
		if p.Running && !p.Leaving && slices.ContainsFunc(o.Claims, func(c Claim) bool { return c.Node == p.Node && of(c) }) {
			n++
		}
	}
	return n
}

// fewerNodes wants fewer nodes than there were, none of them leaving.
func fewerNodes(m Memory, o Observation) (string, bool) {
	saw, running := podsRunning(fewPods)(m, o)
	leaving := slices.ContainsFunc(o.Claims, func(c Claim) bool { return c.Leaving || !c.InService })
	return fmt.Sprintf("%s, of %d", saw, m.Peak), running && !leaving && len(o.Claims) < m.Peak
}

// chooseVictim is the claim whose instance gets the notice: the first by name that has a pod.
func chooseVictim(o Observation) (Claim, bool) {
	var all []Claim
	for _, c := range o.Claims {
		if c.InService && !c.Leaving && c.Instance != "" && runningOn(o, func(x Claim) bool { return x.Name == c.Name }) > 0 {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return Claim{}, false
	}
	return slices.MinFunc(all, func(a, b Claim) int { return strings.Compare(a.Name, b.Name) }), true
}

// replaced wants the claim gone and all pods running elsewhere.
func replaced(m Memory, o Observation) (string, bool) {
	there := slices.ContainsFunc(o.Claims, func(c Claim) bool { return c.Name == m.Victim.Name })
	saw, running := podsRunning(fewPods)(m, o)
	if there {
		return saw + ", claim " + m.Victim.Name + " is still there", false
	}
	return saw, running
}

func noNodes(_ Memory, o Observation) (string, bool) {
	return fmt.Sprintf("%d pods, %d nodes", len(o.Pods), len(o.Claims)), len(o.Pods) == 0 && len(o.Claims) == 0
}

// Replicas returns the number of pods that there are after an action.
func (a Action) Replicas() int {
	return map[Action]int{DoPods: manyPods, DoFewer: fewPods}[a]
}
