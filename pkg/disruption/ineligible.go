package disruption

import "joiner/pkg/model/cluster"

// IneligibleReason is why a node is not disrupted, as metrics, log fields and events tell it. controllers has an event for each.
type IneligibleReason string

// The reasons. What a pass says about a node is one of them with a sentence.
const (
	IneligibleLaunching            IneligibleReason = "launching"                           // its node has not come yet
	IneligibleLeaving              IneligibleReason = "leaving"                             // something takes it away already
	IneligibleUnderWay             IneligibleReason = "underway"                            // a command that it takes part in is under way
	IneligibleNotice               IneligibleReason = "notice"                              // EC2 has announced that it takes it away
	IneligibleFailed               IneligibleReason = "failed"                              // a command about it failed lately
	IneligibleStarting             IneligibleReason = "starting"                            // it is not initialized
	IneligibleNominated            IneligibleReason = "nominated"                           // pods that wait are about to run on it
	IneligibleNoPool               IneligibleReason = "pool"                                // it has no NodePool, or one without instance types
	IneligiblePoolNotReconciled    IneligibleReason = "nodepool-not-reconciled"             // nobody has looked at its NodePool since that was changed
	IneligibleBuffer               IneligibleReason = "buffer"                              // a CapacityBuffer keeps its room free
	IneligibleStaticPool           IneligibleReason = "static"                              // its NodePool has a fixed number of nodes
	IneligibleNever                IneligibleReason = "never"                               // its NodePool consolidates never
	IneligibleConsolidateAfter     IneligibleReason = "consolidate-after"                   // its pods changed within consolidateAfter
	IneligiblePolicy               IneligibleReason = "policy"                              // its NodePool consolidates empty nodes only
	IneligibleUnknownPrice         IneligibleReason = "price"                               // nobody knows what it costs
	IneligiblePaybackPending       IneligibleReason = "payback-pending"                     // it replaced others and has not paid for that
	IneligibleBudget               IneligibleReason = "budget"                              // the budgets of its NodePool let no more nodes go
	IneligibleExpired              IneligibleReason = "expired"                             // it has expired, and its NodePool is only reported about
	IneligibleDrifted              IneligibleReason = "drifted"                             // it has drifted and cannot be replaced
	IneligibleOtherCommand         IneligibleReason = "other-command-in-progress"           // other nodes go first
	IneligibleTimeBudget           IneligibleReason = "time-budget-exceeded"                // passes ran out of time
	IneligibleNoCheaperAlternative IneligibleReason = "no-cheaper-alternative"              // nothing cheaper was found
	IneligibleSmallSavings         IneligibleReason = "savings-below-threshold"             // it would save less than is worth a question
	IneligiblePodsUnschedulable    IneligibleReason = "pods-unschedulable"                  // some of its pods would have no node
	IneligibleSameOffering         IneligibleReason = "same-offering"                       // its replacement would be the same offering
	IneligiblePayback              IneligibleReason = "payback"                             // moving its pods costs more than is saved within the payback time
	IneligibleThreshold            IneligibleReason = "threshold"                           // it would save less than its NodePool asks for
	IneligibleBalanced             IneligibleReason = "balanced"                            // it would save too little for the policy Balanced
	IneligibleFlexibility          IneligibleReason = "flexibility"                         // too few instance types could replace it
	IneligibleProtected                             = IneligibleReason(cluster.Protected)   // a user or a pod asks that it is not disrupted
	IneligiblePodBudget                             = IneligibleReason(cluster.PodBudgeted) // a PodDisruptionBudget keeps one of its pods
	IneligibleFault                IneligibleReason = "fault"                               // Joiner fails about it or its NodePool
	IneligibleReported             IneligibleReason = "reported"                            // it would go if disruption were not only reported; no pass says so, only events and metrics do
)
