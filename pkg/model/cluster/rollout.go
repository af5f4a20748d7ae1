package cluster

import (
	"slices"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
)

// Phases of a rollout.
const (
	RolloutHealthy     = "Healthy"     // nothing is tried
	RolloutProgressing = "Progressing" // a revision is tried
	RolloutPaused      = "Paused"      // the step is a pause
	RolloutHalted      = "Halted"      // the revision failed; its nodes stay
	RolloutRollingBack = "RollingBack" // the revision failed; its nodes are replaced
	RolloutPinned      = "Pinned"      // the revision that people chose is the only one
)

// Rollout is a NodeRollout as read, with what a decision about it sees.
type Rollout struct {
	Name        string        `json:"name"`
	UID         string        `json:"uid,omitempty"`
	Pools       []string      `json:"pools,omitempty"` // that it selects, sorted
	Steps       []RolloutStep `json:"steps"`
	ReadyWithin time.Duration `json:"readyWithin"`
	// that a new node must not have
	NodeConditions []Condition `json:"nodeConditions,omitempty"`
	MinPods        int         `json:"minPods"`
	// of CloudWatch that it must not set off, with their states as the pass read them
	Alarms       []Alarm `json:"alarms,omitempty"`
	AlarmsUnread string  `json:"alarmsUnread,omitempty"` // why nobody knows their states
	Rollback     bool    `json:"rollback,omitempty"`     // what follows a failure; else it halts
	Pinned       string  `json:"pinned,omitempty"`
	Resume       string  `json:"resume,omitempty"` // the token of what people let go on
	Abort        string  `json:"abort,omitempty"`  // the revision that people stopped

	ClusterVersion string   `json:"clusterVersion,omitempty"` // of the API server, such as 1.36; empty for not known
	GoneImages     []string `json:"goneImages,omitempty"`     // of the last good revision, as EC2 said; sorted

	Status    RolloutStatus    `json:"status"`
	Before    *RolloutStatus   `json:"before,omitempty"`    // what the pass found, where it took a step
	Revisions []NodeRevision   `json:"revisions,omitempty"` // stored ones, oldest first
	Workloads []WorkloadHealth `json:"workloads,omitempty"` // by controller, sorted
}

// RolloutStep is one of a number of nodes, a percentage, and a pause, which without a duration lasts until people end
// it.
type RolloutStep struct {
	Nodes   int           `json:"nodes,omitempty"`
	Percent int           `json:"percent,omitempty"`
	Pause   bool          `json:"pause,omitempty"`
	For     time.Duration `json:"for,omitempty"`
}

// AlarmFires is the state of a CloudWatch alarm that fires.
const AlarmFires = "ALARM"

// Alarm is a CloudWatch alarm.
type Alarm struct {
	Name  string `json:"name"`
	State string `json:"state,omitempty"` // as CloudWatch has it; empty where there is no such alarm
}

// RolloutStatus is the progress of a rollout, as stored.
type RolloutStatus struct {
	Phase        string      `json:"phase,omitempty"`
	Revision     string      `json:"revision,omitempty"` // tried now or last
	LastGood     string      `json:"lastGood,omitempty"`
	PreviousGood string      `json:"previousGood,omitempty"`
	Step         int         `json:"step,omitempty"`
	StepStarted  time.Time   `json:"stepStarted,omitzero"`
	NewNodes     int         `json:"newNodes,omitempty"`
	OldNodes     int         `json:"oldNodes,omitempty"`
	Allowed      int         `json:"allowed,omitempty"` // nodes that may have had the revision so far
	Tried        []TriedNode `json:"tried,omitempty"`   // sorted by name
	OldPods      []OldPods   `json:"oldPods,omitempty"` // sorted by controller
	Failed       []string    `json:"failed,omitempty"`  // revisions, the latest last
	Evidence     []string    `json:"evidence,omitempty"`
	Message      string      `json:"message,omitempty"`
	ResumeToken  string      `json:"resumeToken,omitempty"`
	Refused      string      `json:"refused,omitempty"`     // why nothing can be rolled out
	Unavailable  string      `json:"unavailable,omitempty"` // why the last good revision cannot be launched
	NoAlarm      string      `json:"noAlarm,omitempty"`     // which alarms there are not, or cannot be read
}

// States of a node that a revision was tried on.
const (
	TriedStarting    = "Starting"
	TriedInitialized = "Initialized"
	TriedLost        = "Lost" // EC2 took it before it could prove anything
	TriedFailed      = "Failed"
)

// TriedNode is a NodeClaim that was launched with the revision.
type TriedNode struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

// OldPods counts the pods of a controller on old nodes, when most were there since the revision is tried.
type OldPods struct {
	Controller string    `json:"controller"` // its UID
	Pods       int       `json:"pods"`
	Bad        int       `json:"bad,omitempty"`
	Left       time.Time `json:"left,omitzero"` // when none was there any more
}

// NodeRevision is a state of an EC2NodeClass that is kept: what its nodes are made of.
type NodeRevision struct {
	Name     string              `json:"name"`
	Resolved instancetypes.Class `json:"resolved"` // its Name is RevisionKey of the class and the revision
	// of the kubelets in its images, as far as their names tell, sorted
	KubeletVersions []string `json:"kubeletVersions,omitempty"`
}

// WorkloadHealth counts the pods of one controller on new nodes and on old ones, and those that fare badly.
type WorkloadHealth struct {
	Controller string `json:"controller"` // its UID
	Sample     string `json:"sample"`     // a pod of it, as namespace/name
	New        int    `json:"new"`
	NewBad     int    `json:"newBad"`
	Old        int    `json:"old"`
	OldBad     int    `json:"oldBad"`
}

// PoolRollout holds the bounds that a rollout sets a NodePool in this pass.
type PoolRollout struct {
	Name    string `json:"name"`    // of the NodeRollout
	Good    string `json:"good"`    // revision that launches use
	Try     string `json:"try"`     // revision that is tried; empty for none
	Slots   int    `json:"slots"`   // how many more nodes of all its pools may get Try
	DriftTo string `json:"driftTo"` // revision that nodes are compared with; empty: Try and Good may both stay
	// revision that failed: nothing is moved to its nodes any more; empty for none
	Failed string `json:"failed,omitempty"`
	// revisions that failed and whose nodes are replaced by those of Good, whatever the step: they take no more pods
	RolledBack []string `json:"rolledBack,omitempty"`

	Known []KnownRevision `json:"known,omitempty"`
}

// KnownRevision holds the marks by which a NodeClaim shows its revision.
type KnownRevision struct {
	Name        string   `json:"name"`
	Hash        string   `json:"hash,omitempty"`
	HashVersion string   `json:"hashVersion,omitempty"`
	Images      []string `json:"images,omitempty"`
}

// RevisionOf returns the revision that the claim has or is to be launched with; empty for one that nobody knows.
func (r PoolRollout) RevisionOf(c Claim) string {
	if name := c.Annotations[api.AnnotationNodeRevision]; name != "" {
		return name
	}
	for _, k := range r.Known {
		if k.Hash == c.Annotations[awsv1.AnnotationHash] &&
			k.HashVersion == c.Annotations[awsv1.AnnotationHashVersion] &&
			slices.Contains(k.Images, c.ImageID) {
			return k.Name
		}
	}
	return ""
}

// ComparedWith returns the revision whose class tells whether the claim has drifted.
func (r PoolRollout) ComparedWith(c Claim) string {
	if own := r.RevisionOf(c); r.DriftTo == "" && own != "" && (own == r.Good || own == r.Try) {
		return own
	}
	if r.DriftTo == "" {
		return r.Good
	}
	return r.DriftTo
}

// RevisionKey is the name under which a snapshot has the class as the revision keeps it. No object has such a name.
func RevisionKey(class, revision string) string {
	if revision == "" {
		return class
	}
	return class + "@" + revision
}

// ClassKey is the name of the class that the pool launches with, in a snapshot.
func (p Pool) ClassKey() string { return RevisionKey(p.Class, p.Revision) }

// ClassKey is the name of the class that the claim is launched with, in a snapshot.
func (c Claim) ClassKey() string {
	return RevisionKey(c.Class, c.Annotations[api.AnnotationNodeRevision])
}

// IsOfClass reports whether the claim was launched for the class as it is now, as far as refresh has written its hash.
func (c Claim) IsOfClass(class instancetypes.Class) bool {
	return (class.Hash == "" || c.Annotations[awsv1.AnnotationHash] == class.Hash) && slices.ContainsFunc(class.Images,
		func(i instancetypes.Image) bool { return i.ID == c.ImageID })
}
