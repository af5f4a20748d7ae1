package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"joiner/pkg/cluster"
	"joiner/pkg/resource"
)

// Do says what an action does.
type Do string

// What lifecycle and drain may ask for. Repeating any of them is harmless.
const (
	WriteStatus    Do = "status"        // write Conditions onto the claim
	AdoptClaim     Do = "adopt"         // put our finalizer and the label of its class on the claim
	SetDeadline    Do = "set deadline"  // annotate the claim with the time at which draining ends by force
	LeaveNode      Do = "leave"         // annotate the claim with why and until when its node is left, replacement first
	RegisterNode   Do = "register"      // sync the claim onto its node
	InitializeNode Do = "initialize"    // label the node as initialized
	OpenNode       Do = "open"          // take the node's hold off, so that any pod may use it
	TagInstance    Do = "tag"           // name the instance after its node
	Unreserve      Do = "unreserve"     // label claim and node as on-demand instead of reserved
	DeleteClaim    Do = "delete claim"  // condemn: the claim gets a deletion time
	ReleaseClaim   Do = "release claim" // drop our finalizer
	DeleteNode     Do = "delete node"   // the node gets a deletion time
	CondemnNode    Do = "condemn"       // taint the node and take it out of load balancers
	ReleaseNode    Do = "release node"  // drop our finalizer
	Terminate      Do = "terminate"     // terminate the instance
	Evict          Do = "evict"         // ask the eviction API; a budget may refuse
	DeletePod      Do = "delete pod"    // delete with GraceSec, past its budget
	CountPool      Do = "count"         // store in the pool what its nodes have
	Registrations  Do = "registrations" // note in the pool how registrations went
	Tell           Do = "tell"          // an event on the node or, without one, on the claim
)

// Action is one step on one object. Empty fields are not involved.
type Action struct {
	Do         Do
	Pool       string              // name
	Claim      string              // name
	Node       string              // name
	Pod        string              // namespace/name
	Instance   string              // instance id
	Reason     string              // a word for conditions, events and metrics
	Why        string              // a sentence for people
	Conditions []cluster.Condition // for WriteStatus: the conditions to set, Since is filled by the writer
	NodeName   string              // for WriteStatus: the node to name in the status, when not empty
	Deadline   time.Time           // for SetDeadline
	Leave      string              // for LeaveNode: the annotation
	GraceSec   int64               // for DeletePod
	Budget     string              // for Evict: namespace/name of the PodDisruptionBudget that must allow it, empty for none
	Has        resource.List       // for CountPool: what the nodes have, "nodes" included
	Outcomes   []cluster.Registration
	Labels     map[string]string // for AdoptClaim: what else the claim is to carry
	Warning    bool              // for Tell
	Every      time.Duration     // for Tell: how often it is told at most, zero for every two minutes
}

// String says the action in one line.
func (a Action) String() string {
	var parts []string
	for _, p := range []struct{ name, value string }{
		{"pod", a.Pod}, {"pool", a.Pool}, {"node", a.Node}, {"claim", a.Claim}, {"instance", a.Instance},
	} {
		if p.value == "" {
			continue
		}
		if parts == nil { // "delete claim" of claim c1 is said as delete claim c1
			parts = append(parts, strings.TrimSuffix(string(a.Do), " "+p.name))
		}
		parts = append(parts, p.name+" "+p.value)
	}
	if parts == nil {
		parts = append(parts, string(a.Do))
	}
	for _, c := range a.Conditions {
		s := c.Type + "=" + c.Status
		if c.Reason != "" && c.Reason != c.Type {
			s += "(" + c.Reason + ")"
		}
		parts = append(parts, s)
	}
	for _, o := range a.Outcomes {
		if o.OK {
			parts = append(parts, o.ClaimUID+"=ok")
		} else {
			parts = append(parts, o.ClaimUID+"="+o.Reason)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(a.Labels)) {
		parts = append(parts, k+"="+a.Labels[k])
	}
	if a.Do == CountPool {
		parts = append(parts, cmp.Or(a.Has.String(), "nothing"))
	}
	out := strings.Join(parts, " ")
	switch {
	case a.Reason != "" && a.Why != "":
		return out + ": " + a.Reason + ", " + a.Why
	case a.Reason+a.Why != "":
		return out + ": " + a.Reason + a.Why
	}
	return out
}
