package disruption

import "joiner.sh/pkg/model/cluster"

// IneligibleReason is the reason for which a node is not disrupted, as metrics, log fields and events tell it.
type IneligibleReason string

// The reasons. What a pass says about a node is one of them with a sentence.
const (
	IneligibleLaunching IneligibleReason = "launching" // its node has not come yet
	// something takes it away already
	IneligibleLeaving IneligibleReason = "leaving"
	// a command that it takes part in is under way
	IneligibleUnderWay IneligibleReason = "underway"
	// EC2 has announced that it takes it away
	IneligibleNotice IneligibleReason = "notice"
	// a command about it failed lately
	IneligibleFailed   IneligibleReason = "failed"
	IneligibleStarting IneligibleReason = "starting" // it is not initialized
	// pods that wait are about to run on it
	IneligibleNominated IneligibleReason = "nominated"
	// it has no NodePool, or one without instance types
	IneligibleNoPool IneligibleReason = "pool"
	// nobody has looked at its NodePool since that was changed
	IneligiblePoolNotReconciled IneligibleReason = "nodepool-not-reconciled"
	// a CapacityBuffer keeps its room free
	IneligibleBuffer IneligibleReason = "buffer"
	// its NodePool has a fixed number of nodes
	IneligibleStaticPool IneligibleReason = "static"
	// its NodePool consolidates never
	IneligibleNever IneligibleReason = "never"
	// its pods changed within consolidateAfter
	IneligibleConsolidateAfter IneligibleReason = "consolidate-after"
	// its NodePool consolidates empty nodes only
	IneligiblePolicy IneligibleReason = "policy"
	// nobody knows what it costs
	IneligibleUnknownPrice IneligibleReason = "price"
	// it replaced others and has not paid for that
	IneligiblePaybackPending IneligibleReason = "payback-pending"
	// the budgets of its NodePool let no more nodes go
	IneligibleBudget IneligibleReason = "budget"
	// it has expired, and its NodePool is only reported about
	IneligibleExpired IneligibleReason = "expired"
	// the step of a NodeRollout allows no more nodes of the revision that it is to get
	IneligibleRollout IneligibleReason = "rollout"
	// it has drifted and cannot be replaced
	IneligibleDrifted              IneligibleReason = "drifted"
	IneligibleOtherCommand         IneligibleReason = "other-command-in-progress" // other nodes go first
	IneligibleOverruns             IneligibleReason = "time-budget-exceeded"      // passes ran out of time
	IneligibleNoCheaperAlternative IneligibleReason = "no-cheaper-alternative"    // nothing cheaper was found
	// it would save less than is worth a question
	IneligibleSmallSavings IneligibleReason = "savings-negligible"
	// some of its pods would have no node
	IneligiblePodsUnschedulable IneligibleReason = "pods-unschedulable"
	// its replacement would be the same offering
	IneligibleSameOffering IneligibleReason = "same-offering"
	// moving its pods costs more than is saved within the payback time
	IneligiblePayback IneligibleReason = "payback"
	// it would save less than its NodePool asks for
	IneligibleThreshold IneligibleReason = "threshold"
	// it would save too little for the policy Balanced
	IneligibleBalanced IneligibleReason = "balanced"
	// too few instance types could replace it
	IneligibleFlexibility IneligibleReason = "flexibility"
	// it is a spot node, which its NodePool or the setting spotToSpotConsolidation has not replaced by spot nodes
	IneligibleSpotToSpot IneligibleReason = "spot-to-spot"
	// a user or a pod asks that it is not disrupted
	IneligibleProtected = IneligibleReason(cluster.Protected)
	// a PodDisruptionBudget keeps one of its pods
	IneligiblePodBudget = IneligibleReason(cluster.PodBudgeted)
	// Joiner fails about it or its NodePool
	IneligibleFault IneligibleReason = "fault"
	// it would go if disruption were not only reported; no pass says so, only events and metrics do
	IneligibleReported IneligibleReason = "reported"
)
