package cluster

import "time"

// EvictionOutcome is the result of an eviction.
type EvictionOutcome string

// The outcomes of an eviction.
const (
	Evicted EvictionOutcome = "evicted" // the pod is being deleted
	Refused EvictionOutcome = "refused" // a disruption budget does not allow it now
	Gone    EvictionOutcome = "gone"    // the pod ended or was replaced by another of its name
)

// Eviction is the answer of the eviction API about one pod.
type Eviction struct {
	Outcome EvictionOutcome
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
