package cluster

import "time"

// Outcome is what became of an eviction.
type Outcome string

// The outcomes of an eviction.
const (
	Evicted Outcome = "evicted" // the pod is being deleted
	Refused Outcome = "refused" // a disruption budget does not allow it now
	Gone    Outcome = "gone"    // the pod ended or was replaced by another of its name
)

// Eviction is the answer of the eviction API about one pod.
type Eviction struct {
	Outcome Outcome
	Message string // of a refusal, for people
}

// Event is something to tell about an object.
type Event struct {
	Kind      string // Pod, DaemonSet, Node, NodeClaim, NodePool or EC2NodeClass
	Namespace string // empty for objects without
	Name      string
	UID       string
	Warning   bool
	Reason    string // one word
	Message   string // a sentence

	// Every is how often the same event is told at most; zero for every two minutes.
	Every time.Duration
}

// Registration is how it ended for a NodeClaim that its node should join the cluster.
type Registration struct {
	ClaimUID string
	OK       bool
	Reason   string // of a failure: one word
	Message  string // of a failure: a sentence
}
