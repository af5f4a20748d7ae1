package v1

// ConditionReady is the root condition of every kind: True only while all the conditions it depends on are.
const ConditionReady = "Ready"

// Conditions of a NodePool.
const (
	ConditionValidationSucceeded     = "ValidationSucceeded"
	ConditionNodeClassReady          = "NodeClassReady"
	ConditionNodeRegistrationHealthy = "NodeRegistrationHealthy"
	// not Karpenter's; False while budgets and the like cannot be understood
	ConditionDisruptionValid        = "DisruptionValid"
	ReasonNodePoolValidationFailed  = "NodePoolValidationFailed"
	ReasonNodeClassNotFound         = "NodeClassNotFound"
	ReasonNodeClassTerminating      = "NodeClassTerminating"
	ReasonNodeClassReadinessUnknown = "NodeClassReadinessUnknown"
	ReasonRegistrationFailed        = "RegistrationFailed"
	ReasonReconcilingDependents     = "ReconcilingDependents"
	ReasonUnhealthyDependents       = "UnhealthyDependents"
	ReasonAwaitingReconciliation    = "AwaitingReconciliation"
	ReasonZonalShiftActive          = "ZonalShiftActive"  // of events
	ReasonZonalShiftCleared         = "ZonalShiftCleared" // of events
	MessageAwaitingReconciliation   = "object is awaiting reconciliation"
)

// Conditions of a NodeClaim.
const (
	ConditionLaunched             = "Launched"
	ConditionRegistered           = "Registered"
	ConditionInitialized          = "Initialized"
	ConditionConsolidatable       = "Consolidatable"
	ConditionDrifted              = "Drifted"
	ConditionDisruptionReason     = "DisruptionReason"
	ConditionDrained              = "Drained"
	ConditionVolumesDetached      = "VolumesDetached"
	ConditionInstanceTerminating  = "InstanceTerminating"
	ConditionConsistentStateFound = "ConsistentStateFound"
	// ConditionStopped of stopped capacity is Unknown while its node warms and stops, True while its instance waits,
	// and False once it was started for pods.
	ConditionStopped = "Stopped"
)

// Reasons of NodeClaim conditions; a True condition carries its own type as the reason unless one is named here.
const (
	ReasonLaunchFailed                  = "LaunchFailed"
	ReasonNodeNotFound                  = "NodeNotFound"
	ReasonMultipleNodesFound            = "MultipleNodesFound"
	ReasonNodeNotReady                  = "NodeNotReady"
	ReasonStartupTaintsExist            = "StartupTaintsExist"
	ReasonKnownEphemeralTaintsExist     = "KnownEphemeralTaintsExist"
	ReasonResourceNotRegistered         = "ResourceNotRegistered"
	ReasonDraining                      = "Draining"
	ReasonAwaitingVolumeDetachment      = "AwaitingVolumeDetachment"
	ReasonTerminationGracePeriodElapsed = "TerminationGracePeriodElapsed"
	ReasonDetachTimeout                 = "DetachTimeout" // of Joiner
	ReasonConsistencyCheckFailed        = "ConsistencyCheckFailed"
	// of Launched: its instance runs, and the claim does not know it yet
	ReasonInstanceStarted = "InstanceStarted"
	// of Launched: it waits, because the ceiling of the cluster allows no more
	ReasonCeilingReached = "CeilingReached"
	ReasonWarming        = "Warming"  // of Stopped: its node starts and pulls images
	ReasonStopping       = "Stopping" // of Stopped: Joiner stops its instance
	ReasonStarting       = "Starting" // of Stopped: Joiner starts its instance for pods
	ReasonStarted        = "Started"  // of Stopped: it is a node as others are
)
