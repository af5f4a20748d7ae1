package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
)

// ActionKind says what an action does.
type ActionKind string

// What lifecycle and drain may ask for. Repeating any of them is harmless.
const (
	WriteStatus ActionKind = "status"       // write Conditions onto the claim
	AdoptClaim  ActionKind = "adopt"        // put our finalizer and the label of its class on the claim
	SetDeadline ActionKind = "set deadline" // annotate the claim with the time at which draining ends by force
	// annotate the claim with why and until when its node is left, replacement first
	LeaveNode           ActionKind = "leave"
	RegisterNode        ActionKind = "register"      // sync the claim onto its node
	InitializeNode      ActionKind = "initialize"    // label the node as initialized
	OpenNode            ActionKind = "open"          // take the node's hold off, so that any pod may use it
	TagInstance         ActionKind = "tag"           // name the instance after its node
	Unreserve           ActionKind = "unreserve"     // label claim and node as on-demand instead of reserved
	DeleteClaim         ActionKind = "delete claim"  // the claim gets a deletion time
	ReleaseClaim        ActionKind = "release claim" // drop our finalizer
	DeleteNode          ActionKind = "delete node"   // the node gets a deletion time
	TaintForTermination ActionKind = "taint"         // taint the node and take it out of load balancers
	TaintNode           ActionKind = "keep pods off" // taint the node, which load balancers go on using
	ExcludeNode         ActionKind = "exclude"       // take the tainted node out of load balancers
	ReleaseNode         ActionKind = "release node"  // drop our finalizer
	Terminate           ActionKind = "terminate"     // terminate the instance
	StopInstance        ActionKind = "stop"          // stop the instance, which stays with its claim
	Evict               ActionKind = "evict"         // ask the eviction API; a budget may refuse
	DeletePod           ActionKind = "delete pod"    // delete with GraceSec, past its budget
	// hold against the claim's class that its instance ended before its node joined
	NoteFailedLaunch ActionKind = "note failed launch"
	NoteMissing      ActionKind = "note missing resource" // hold Unused against the type of the claim's class
	NoteUseless      ActionKind = "note useless node"     // hold Unused against the claim's class and type
	CountPool        ActionKind = "count"                 // store in the pool what its nodes have
	Registrations    ActionKind = "registrations"         // note in the pool how registrations went
	NoteShifts       ActionKind = "note shifts"           // note on the pool which zonal shifts its events told of
	// an event on the pool or the node or, without either, on the claim
	Tell ActionKind = "tell"
)

// Action is one step on one object. Empty fields are not involved.
type Action struct {
	Do         ActionKind          // what is done; the others say to what, and how
	Pool       string              // name
	Claim      string              // name
	Node       string              // name
	Pod        string              // namespace/name
	Instance   string              // instance id
	Reason     string              // a word for conditions, events and metrics
	Why        string              // a sentence for people
	Conditions []cluster.Condition // for WriteStatus: the conditions to set, Since is filled by the writer
	NodeName   string              // for WriteStatus: the node to name in the status, when not empty
	NoNode     bool                // for WriteStatus: the status names no node any more
	Deadline   time.Time           // for SetDeadline
	Leave      string              // for LeaveNode: the annotation
	GraceSec   int64               // for DeletePod
	// for Evict: namespace/name of the PodDisruptionBudget that must allow it, empty for none
	Budget   string
	Has      resources.List             // for CountPool: what the nodes have, "nodes" included
	Outcomes []cluster.Registration     // for Registrations: how they went
	Zones    []string                   // for NoteShifts: ids of zones
	Labels   map[string]string          // for AdoptClaim: what else the claim is to carry
	Unused   []instancetypes.UnusedNode // for NoteMissing and NoteUseless
	Warning  bool                       // for Tell: an event of type Warning, not Normal
	Every    time.Duration              // for Tell: how often it is told at most, zero for every two minutes
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
	if a.Do == NoteShifts {
		parts = append(parts, cmp.Or(strings.Join(a.Zones, ","), "nothing"))
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
