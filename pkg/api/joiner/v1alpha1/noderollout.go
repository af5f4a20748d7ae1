package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "joiner.sh/pkg/api/v1"
)

// NodeRollout tries a changed image or EC2NodeClass on a few nodes of its NodePools before the others get it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=noderollouts,scope=Cluster,categories=karpenter,singular=noderollout
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase",description=""
// +kubebuilder:printcolumn:name="Step",type="integer",JSONPath=".status.step",description=""
// +kubebuilder:printcolumn:name="New",type="integer",JSONPath=".status.newNodes",description=""
// +kubebuilder:printcolumn:name="Old",type="integer",JSONPath=".status.oldNodes",description=""
// +kubebuilder:printcolumn:name="Revision",type="string",JSONPath=".status.revision",description=""
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.message",priority=1,description=""
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
type NodeRollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which NodePools, in which steps, and what stops them.
	// +required
	Spec NodeRolloutSpec `json:"spec"`
	// Status tells how far the rollout is.
	// +optional
	Status NodeRolloutStatus `json:"status,omitzero"`
}

// NodeRolloutList is a list of NodeRollouts.
//
// +kubebuilder:object:root=true
type NodeRolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeRollout `json:"items"`
}

// NodeRolloutSpec says which NodePools, in which steps, and what stops them.
type NodeRolloutSpec struct {
	// NodePoolSelector chooses the NodePools. All of them must use one EC2NodeClass.
	// +required
	NodePoolSelector NodePoolSelector `json:"nodePoolSelector"`
	// Steps are taken one after the other; after the last one the revision is the last good one, and the nodes that are
	// left are replaced as budgets allow.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:message="steps must not go backwards: 'percent' must not become less",rule="self.filter(s, has(s.percent)).map(s, s.percent).isSorted()"
	// +kubebuilder:validation:XValidation:message="steps must not go backwards: 'nodes' must not become less",rule="self.filter(s, has(s.nodes)).map(s, s.nodes).isSorted()"
	// +kubebuilder:validation:XValidation:message="steps must not go backwards: 'nodes' must not come after 'percent'",rule="self.filter(s, !has(s.pause)).map(s, has(s.percent) ? 1 : 0).isSorted()"
	// +kubebuilder:validation:XValidation:message="a pause cannot be the first step: nothing has changed yet",rule="size(self) == 0 || !has(self[0].pause)"
	// +listType=atomic
	// +required
	Steps []RolloutStep `json:"steps"`
	// Analysis sets the limits beyond which a new revision fails.
	// +optional
	Analysis *RolloutAnalysis `json:"analysis,omitempty"`
	// OnFailure says what follows when the analysis fails: halt leaves the new nodes as they are, rollback replaces
	// them by nodes of the last good revision. Either way nothing more is launched with the revision.
	// +kubebuilder:validation:Enum=halt;rollback
	// +kubebuilder:default=halt
	// +optional
	OnFailure OnFailure `json:"onFailure,omitempty"`
	// PinnedRevision is the revision that nodes are launched with and that others are replaced by, whatever the
	// EC2NodeClass says. `joiner rollout undo` sets it to the last good one.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PinnedRevision string `json:"pinnedRevision,omitempty"`
}

// OnFailure names the action after a failed analysis.
type OnFailure string

// What may follow a failed analysis.
const (
	Halt     OnFailure = "halt"
	Rollback OnFailure = "rollback"
)

// NodePoolSelector chooses NodePools by their names or by their labels.
//
// +kubebuilder:validation:XValidation:message="exactly one of 'names' and 'matchLabels' must be set",rule="has(self.names) != has(self.matchLabels)"
type NodePoolSelector struct {
	// Names of NodePools.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=set
	// +optional
	Names []string `json:"names,omitempty"`
	// MatchLabels are labels that a NodePool carries in its metadata.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// RolloutStep is a number of new nodes that may be there, or a pause.
//
// +kubebuilder:validation:XValidation:message="a step must have exactly one of 'nodes', 'percent' and 'pause'",rule="[has(self.nodes), has(self.percent), has(self.pause)].filter(x, x).size() == 1"
type RolloutStep struct {
	// Nodes limits the nodes with the new revision.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Nodes *int32 `json:"nodes,omitempty"`
	// Percent limits the nodes with the new revision, as a part of all, rounded up.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Percent *int32 `json:"percent,omitempty"`
	// Pause waits for so long while the analysis goes on.
	// +optional
	Pause *RolloutPause `json:"pause,omitempty"`
}

// RolloutPause stops a rollout for a duration; without one, until `joiner rollout resume`.
type RolloutPause struct {
	// Duration of the pause.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +optional
	Duration *karpv1.Duration `json:"duration,omitempty"`
}

// RolloutAnalysis sets the limits beyond which a new revision fails.
type RolloutAnalysis struct {
	// ReadyWithin limits the time until a new node is initialized, and the time that it may be NotReady after that.
	// 10m where it is not given.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +optional
	ReadyWithin *karpv1.Duration `json:"readyWithin,omitempty"`
	// NodeConditions are conditions that a new node must not have.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	NodeConditions []NodeCondition `json:"nodeConditions,omitempty"`
	// Alarms are names of CloudWatch alarms, metric or composite ones, of Joiner's region and account, none of which a
	// revision may bring into the state ALARM.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +listType=set
	// +optional
	Alarms []string `json:"alarms,omitempty"`
	// MinPods sets the number of pods on new nodes, of workloads with pods on old nodes too, that a comparison needs. 5
	// where it is not given.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MinPods *int32 `json:"minPods,omitempty"`
}

// NodeCondition is a condition of a Node.
type NodeCondition struct {
	// Type of the condition.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +required
	Type string `json:"type"`
	// Status that it must not have.
	// +kubebuilder:validation:Enum="True";"False";Unknown
	// +kubebuilder:default="True"
	// +optional
	Status string `json:"status,omitempty"`
}

// NodeRolloutStatus tells how far a rollout is.
type NodeRolloutStatus struct {
	// Phase: Healthy, Progressing, Paused, Halted, RollingBack or Pinned.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Revision is the one that is tried, or was last.
	// +optional
	Revision string `json:"revision,omitempty"`
	// LastGoodRevision is the one that everything else is launched with.
	// +optional
	LastGoodRevision string `json:"lastGoodRevision,omitempty"`
	// PreviousGoodRevision was the last good one before.
	// +optional
	PreviousGoodRevision string `json:"previousGoodRevision,omitempty"`
	// Step is the index of the step that is being taken.
	// +optional
	Step int32 `json:"step,omitempty"`
	// StepStarted is the time when the step began.
	// +optional
	StepStarted *metav1.Time `json:"stepStarted,omitempty"`
	// NewNodes is the number of nodes with the revision.
	// +optional
	NewNodes int32 `json:"newNodes,omitempty"`
	// OldNodes is the number of nodes with another revision.
	// +optional
	OldNodes int32 `json:"oldNodes,omitempty"`
	// AllowedNodes is the number of nodes that the steps so far let have the revision.
	// +optional
	AllowedNodes int32 `json:"allowedNodes,omitempty"`
	// Tried are the NodeClaims that were launched with the revision.
	// +listType=map
	// +listMapKey=name
	// +optional
	Tried []TriedNode `json:"tried,omitempty"`
	// OldPods remembers the pods of workloads on old nodes, so that those that moved are compared as well.
	// +listType=map
	// +listMapKey=controller
	// +optional
	OldPods []OldPods `json:"oldPods,omitempty"`
	// FailedRevisions lists revisions that failed or were aborted, the latest last.
	// +listType=atomic
	// +optional
	FailedRevisions []string `json:"failedRevisions,omitempty"`
	// Evidence lists the findings of the analysis, in words.
	// +listType=atomic
	// +optional
	Evidence []string `json:"evidence,omitempty"`
	// Message says what the rollout waits for, or why it stopped.
	// +optional
	Message string `json:"message,omitempty"`
	// ResumeToken names what it waits for; the annotation joiner.sh/resume-rollout with this value lets it go on.
	// +optional
	ResumeToken string `json:"resumeToken,omitempty"`
	// Conditions: Accepted, LastGoodAvailable and AlarmsFound.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TriedNode is a NodeClaim that was launched with the revision.
type TriedNode struct {
	// Name of the NodeClaim.
	// +required
	Name string `json:"name"`
	// State: Starting, Initialized, Lost or Failed.
	// +required
	State string `json:"state"`
}

// OldPods counts the pods of a controller on old nodes, when most were there since the revision is tried.
type OldPods struct {
	// Controller is its UID.
	// +required
	Controller string `json:"controller"`
	// Pods on old nodes.
	// +required
	Pods int32 `json:"pods"`
	// Bad ones of them.
	// +optional
	Bad int32 `json:"bad,omitempty"`
	// Left is the time when the last of them had left.
	// +optional
	Left *metav1.Time `json:"left,omitempty"`
}

// Conditions of a NodeRollout.
const (
	ConditionAccepted          = "Accepted"
	ConditionLastGoodAvailable = "LastGoodAvailable"
	ConditionAlarmsFound       = "AlarmsFound"
)

// Annotations that people, or `joiner rollout` for them, set on a NodeRollout.
const (
	// AnnotationResume lets a rollout go on that waits: the value of status.resumeToken.
	AnnotationResume = "joiner.sh/resume-rollout"
	// AnnotationAbort stops the rollout of the revision named.
	AnnotationAbort = "joiner.sh/abort-rollout"
)
