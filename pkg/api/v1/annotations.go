package v1

// The annotation keys of Joiner's own. The ones for people stand on NodePools, in their metadata; the others are how
// one function tells another what it has decided, and are Joiner's to write. pkg/README.md says who reads and removes
// each, and what happens if the writer dies. Those of Karpenter are in names.go.
const (
	// On NodePools, written by people. Package model/annotations reads them, and has a sentence for the page of each.

	// AnnotationDisruption set to "report" has disruption decide about the nodes of the pool and tell, and change
	// nothing.
	AnnotationDisruption = "joiner.sh/disruption"
	// AnnotationMinSavingsUSD is the least that a consolidation of the pool's nodes must save, in USD per hour.
	AnnotationMinSavingsUSD = "joiner.sh/min-savings-usd"
	// AnnotationMinSavingsPercent is the least that a consolidation must save, in percent of what its nodes cost.
	AnnotationMinSavingsPercent = "joiner.sh/min-savings-percent"
	// AnnotationSpotToSpot says whether consolidation replaces spot nodes of the pool by spot nodes: "true" or "false".
	// Without it the setting spotToSpotConsolidation holds.
	AnnotationSpotToSpot = "joiner.sh/spot-to-spot-consolidation"
	// AnnotationExpire set to "within-budgets" has nodes that expire replaced as drifted ones are; "force" deletes
	// them, as Karpenter does.
	AnnotationExpire = "joiner.sh/expire"
	// AnnotationRebalance says what a rebalance recommendation does to nodes of the pool.
	AnnotationRebalance = "joiner.sh/rebalance"
	// AnnotationHibernationSchedule is a cron schedule at which the pool falls asleep, or "never" for a pool that stays
	// awake whatever the stack does.
	AnnotationHibernationSchedule = "joiner.sh/hibernation-schedule"
	// AnnotationHibernationDuration is the duration for which the pool sleeps from each start on.
	AnnotationHibernationDuration = "joiner.sh/hibernation-duration"
	// AnnotationTimeZone is the IANA name of the time zone in which schedules of the pool are read; UTC without it.
	AnnotationTimeZone = "joiner.sh/time-zone"
	// AnnotationLimitUSD is the most that the pool's nodes may cost together, in USD per hour.
	AnnotationLimitUSD = "joiner.sh/limit-usd-per-hour"
	// AnnotationNodeOverheadUSD is a price per node of the pool that others than AWS take, in USD per hour, such as
	// agents that are licensed per host. It counts as a part of each node's price.
	AnnotationNodeOverheadUSD = "joiner.sh/node-overhead-usd-per-hour"

	// On NodeClaims, written by Joiner.

	// AnnotationNominatedPods names, comma separated, the pods (namespace/name) that are planned for the claim's node.
	AnnotationNominatedPods = "joiner.sh/nominated-pods"
	// AnnotationNominatedOwners counts, by controller, the pods that a replacement is kept for until they are evicted.
	AnnotationNominatedOwners = "joiner.sh/nominated-owners"
	// AnnotationLaunchAttempt counts the CreateFleet requests for the claim; it is part of their token.
	AnnotationLaunchAttempt = "joiner.sh/launch-attempt"
	// AnnotationLaunchBatch names the CreateFleet request that the claim shares with others, and how many they are.
	AnnotationLaunchBatch = "joiner.sh/launch-batch"
	// AnnotationNodeRevision is the revision of its EC2NodeClass that the claim is launched with.
	AnnotationNodeRevision = "joiner.sh/node-revision"
	// AnnotationReplaces says of a replacement that it stands in for claims that are disrupted.
	AnnotationReplaces = "joiner.sh/replaces"
	// AnnotationDisruptionCommand is the command that a claim takes part in, as JSON.
	AnnotationDisruptionCommand = "joiner.sh/disruption-command"
	// AnnotationDoNotConsolidateBefore is until when consolidation leaves a replacement alone, since it has not paid
	// for itself yet.
	AnnotationDoNotConsolidateBefore = "joiner.sh/do-not-consolidate-before"
	// AnnotationReplaceRequested asks for a replacement of the claim's node before it is drained, and says why and by
	// when.
	AnnotationReplaceRequested = "joiner.sh/replace-requested"
	// AnnotationDrainAfterReplacement is until when the pods of an interrupted node stay for their replacement.
	AnnotationDrainAfterReplacement = "joiner.sh/drain-after-replacement-until"
	// AnnotationDeletionReason is the notice of EC2 that a claim is deleted for, in the words of the metrics.
	AnnotationDeletionReason = "joiner.sh/deletion-reason"

	// AnnotationStoppedCapacity set to "true" says that the claim was made for CapacityBuffers of stopped capacity. Its
	// condition Stopped says how far it is.
	AnnotationStoppedCapacity = "joiner.sh/stopped-capacity"
	// AnnotationStartRequested is the time when a stopped instance was asked to start, for pods.
	AnnotationStartRequested = "joiner.sh/start-requested"

	// On EC2NodeClasses and NodePools, written by refresh and lifecycle.

	// AnnotationDryRunResult holds EC2's answer to a dry run of a launch with the class.
	AnnotationDryRunResult = "joiner.sh/dry-run-result"
	// AnnotationHashedSpec is the hash of the spec that the drift hash of the class was made of.
	AnnotationHashedSpec = "joiner.sh/hashed-spec"
	// AnnotationObservedMemory is the memory that nodes of the class reported, by instance type.
	AnnotationObservedMemory = "joiner.sh/observed-memory"
	// AnnotationObservedShortfalls holds the resources of which nodes of the class had less for pods than expected.
	AnnotationObservedShortfalls = "joiner.sh/observed-shortfalls"
	// AnnotationRegistrationHistory holds the results of the last registrations of the pool's nodes.
	AnnotationRegistrationHistory = "joiner.sh/registration-history"
	// AnnotationZonalShifts holds the ids of the zones of which events on the pool say that traffic is shifted away
	// from them, comma separated.
	AnnotationZonalShifts = "joiner.sh/zonal-shifts"
	// AnnotationTotals on the lease of those who create capacity is what its holders counted and measured.
	AnnotationTotals = "joiner.sh/totals"
)
