package cluster

import "time"

// PartKind is a kind of thing that a decision can be taken without.
type PartKind string

// The kinds of parts.
const (
	WaitingPods PartKind = "waiting pods" // alike, without a node or on one that goes: they stay without a place
	// alike: their room counts, their rules do not, and their nodes are not disrupted by choice
	RunningPods PartKind = "running pods"
	DaemonPods  PartKind = "DaemonSet" // its pods are reckoned with on every node
	OverlayPart PartKind = "NodeOverlay"
	PoolPart    PartKind = "NodePool"  // nothing is launched from it
	ClaimPart   PartKind = "NodeClaim" // it is not disrupted by choice
	// one of stopped capacity: it is not filled, and no node goes because nobody has use for it
	BufferPart PartKind = "CapacityBuffer"
	SearchPart PartKind = "search" // for a lower price: the plan is the first that is found
)

// Aside is a part of the snapshot that a decision failed about, and is taken without until then. From then on it is
// tried again.
type Aside struct {
	Kind PartKind `json:"kind"`
	// of the object; of alike pods their namespace and the digest of what they ask for
	Name string `json:"name"`
	// of a NodePool that is left out for some alike pods alone: the name of these
	For   string    `json:"for,omitempty"`
	Why   string    `json:"why"` // what the program said
	Until time.Time `json:"until"`
}
