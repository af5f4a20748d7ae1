package cluster

import "time"

// Outcome is the result of an eviction.
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

	// Every is the shortest time between two tellings of the same event; zero for two minutes.
	Every time.Duration
}

// Registration tells whether the node of a NodeClaim joined the cluster.
type Registration struct {
	ClaimUID string
	OK       bool
	Reason   string // of a failure: one word
	Message  string // of a failure: a sentence
}
