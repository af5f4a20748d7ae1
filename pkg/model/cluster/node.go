package cluster

import (
	"slices"
	"strings"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// Taint is a taint of a node or pool.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"` // NoSchedule, PreferNoSchedule, NoExecute
}

// String prints the taint as kubectl does.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// IsNomination reports whether the taint keeps a new node for the pods it was planned for.
func (t Taint) IsNomination() bool { return t.Key == api.TaintHold }

// IsFailedRevision reports whether it keeps pods off a node that a NodeRollout rolls back.
func (t Taint) IsFailedRevision() bool { return t.Key == api.TaintFailedRevision }

// IsPreviousRevision reports whether it keeps pods off a node that a NodeRollout is to replace while it drains another.
func (t Taint) IsPreviousRevision() bool { return t.Key == api.TaintPreviousRevision }

// Ephemeral reports whether the taint goes away by itself while a node starts.
func (t Taint) Ephemeral() bool {
	switch t.Key {
	case "node.kubernetes.io/not-ready":
		return t.Effect == "NoSchedule" || t.Effect == "NoExecute"
	case "node.kubernetes.io/unreachable":
		return t.Effect == "NoSchedule"
	case "node.cloudprovider.kubernetes.io/uninitialized":
		return t.Effect == "NoSchedule"
	case api.TaintUnregistered:
		return t.Effect == "NoExecute"
	}
	return strings.HasPrefix(t.Key, "readiness.k8s.io/")
}

// ofAgent reports whether an agent of networking or storage puts such a taint on nodes until it runs there: as
// node.cilium.io/agent-not-ready and ebs.csi.aws.com/agent-not-ready.
func (t Taint) ofAgent() bool {
	_, name, _ := strings.Cut(t.Key, "/")
	return name == "agent-not-ready" || t.Key == "node.kubernetes.io/network-unavailable"
}

// ofControlPlane reports whether Kubernetes, Karpenter or Joiner put the taint on the node, for reasons of their own.
func (t Taint) ofControlPlane() bool {
	domain, _, _ := strings.Cut(t.Key, "/")
	return slices.ContainsFunc([]string{"kubernetes.io", "karpenter.sh", "karpenter.k8s.aws", "joiner.sh"},
		func(own string) bool { return domain == own || strings.HasSuffix(domain, "."+own) })
}

// Toleration is a toleration of a pod.
type Toleration struct {
	Key      string `json:"key,omitempty"`      // empty with operator Exists tolerates every key
	Operator string `json:"operator,omitempty"` // Equal (also when empty) or Exists
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"` // empty for every effect
}

// Tolerates reports whether the toleration covers the taint.
func (t Toleration) Tolerates(taint Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	if t.Operator == "Exists" {
		return true
	}
	return t.Key != "" && t.Value == taint.Value
}

// HardTaints returns the taints that keep pods off. One with PreferNoSchedule makes kube-scheduler prefer other nodes.
func HardTaints(taints []Taint) []Taint { return slices.DeleteFunc(slices.Clone(taints), Taint.isSoft) }

// Untolerated returns the taints that none of the tolerations covers.
func Untolerated(taints []Taint, tolerations []Toleration) []Taint {
	var out []Taint
	for _, t := range taints {
		covered := false
		for _, tol := range tolerations {
			covered = covered || tol.Tolerates(t)
		}
		if !covered {
			out = append(out, t)
		}
	}
	return out
}

// Node is a Node object as read.
type Node struct {
	Name        string            `json:"name"`
	UID         string            `json:"uid,omitempty"`
	ProviderID  string            `json:"providerID,omitempty"`
	Created     time.Time         `json:"created"`
	Deleting    time.Time         `json:"deleting,omitzero"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"` // of karpenter.sh and joiner.sh only
	Taints      []Taint           `json:"taints,omitempty"`
	Capacity    resources.List    `json:"capacity"`
	Allocatable resources.List    `json:"allocatable"`
	Ready       bool              `json:"ready"`
	ReadySince  time.Time         `json:"readySince,omitzero"`  // last transition of the Ready condition
	Finalizer   bool              `json:"finalizer,omitempty"`  // carries karpenter.sh/termination
	Conditions  []Condition       `json:"conditions,omitempty"` // type, status and since only, sorted by type

	// VolumeLimits is the number of volumes of a CSI driver that the node can have attached, by driver; those not named
	// have no limit. Beside drivers it has free volumes by RequiredVolume.
	VolumeLimits map[string]int64 `json:"volumeLimits,omitempty"`
	// Provides lists what it has of what pods may require: features that its kubelet declares, and CSI drivers.
	Provides []string `json:"provides,omitempty"`
}

// Claim is a NodeClaim as read.
type Claim struct {
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
	Version    string `json:"version,omitempty"` // resourceVersion, for optimistic concurrency
	Generation int64  `json:"generation,omitempty"`
	Pool       string `json:"pool,omitempty"` // label karpenter.sh/nodepool
	// of the NodePool that owns it, empty for a claim made by hand
	PoolUID          string            `json:"poolUID,omitempty"`
	Class            string            `json:"class"`
	Created          time.Time         `json:"created"`
	Deleting         time.Time         `json:"deleting,omitzero"`
	Finalizer        bool              `json:"finalizer,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	Annotations      map[string]string `json:"annotations,omitempty"`
	Requirements     requirements.Set  `json:"requirements"`
	Requests         resources.List    `json:"requests"`
	Taints           []Taint           `json:"taints,omitempty"`
	StartupTaints    []Taint           `json:"startupTaints,omitempty"`
	ExpireAfter      time.Duration     `json:"expireAfter,omitempty"`      // 0 for Never
	TerminationGrace *time.Duration    `json:"terminationGrace,omitempty"` // nil for no limit

	ProviderID  string         `json:"providerID,omitempty"`
	NodeName    string         `json:"nodeName,omitempty"`
	ImageID     string         `json:"imageID,omitempty"`
	Capacity    resources.List `json:"capacity"`
	Allocatable resources.List `json:"allocatable"`
	Conditions  []Condition    `json:"conditions,omitempty"` // sorted by type

	// when a pod last came, ended or began to end on its node, in whole seconds
	LastPodEvent time.Time `json:"lastPodEvent,omitzero"`
}

// Condition is a status condition.
type Condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"` // True, False, Unknown
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"` // last change of Status
}

// AnyDeleted reports whether one of the claims is marked for deletion.
func AnyDeleted(claims []Claim) bool {
	return slices.ContainsFunc(claims, func(c Claim) bool { return !c.Deleting.IsZero() })
}

// InstanceID is the id of the claim's instance, empty before its launch.
func (c Claim) InstanceID() string { return InstanceIDOf(c.ProviderID) }

// InstanceIDOf returns the id of the instance, the last part of a provider ID such as aws:///us-west-2a/i-0123.
func InstanceIDOf(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// Expired reports whether the claim is older than its expireAfter.
func (c Claim) Expired(now time.Time) bool {
	return c.ExpireAfter > 0 && !now.Before(c.Created.Add(c.ExpireAfter))
}

// Overdue reports whether no node registered for the launched claim within the limit, so that lifecycle ends it when it
// looks next. A limit of 0 is none.
func (c Claim) Overdue(now time.Time, limit time.Duration) bool {
	k := c.Condition(api.ConditionRegistered)
	return limit > 0 && c.Is(api.ConditionLaunched) && k.Status != "True" && !now.Before(k.Since.Add(limit))
}

// NeverLaunched reports whether the claim has had no instance for longer than lifecycle leaves any claim, so that
// somebody keeps it from being deleted. A claim whose age nobody knows, as a stand-in of a what-if question, is not.
func (c Claim) NeverLaunched(now time.Time, rules Settings) bool {
	k := c.Condition(api.ConditionLaunched)
	return rules.LaunchTimeout > 0 && c.ProviderID == "" && k.Status != "True" && !k.Since.IsZero() &&
		!now.Before(k.Since.Add(rules.LaunchTimeout+rules.RegistrationTimeout))
}

// Deadline returns when draining the claim's node ends by force, as the annotation on it says; zero if it says nothing.
func (c Claim) Deadline() time.Time {
	t, err := time.Parse(time.RFC3339, c.Annotations[api.AnnotationTerminationTimestamp])
	if err != nil {
		return time.Time{}
	}
	return t
}

// slowDrainAfter is the time that a drain, or what comes after it, may take before nobody stays only to watch it.
const slowDrainAfter = 5 * time.Minute

// BlockedForLong reports whether the claim has been drained, or has ended after that, for so long that the next look at
// it may wait for the schedule, unless there is something to do: somebody's pods do not let its node go, which may last
// for days.
func (c Claim) BlockedForLong(now time.Time) bool {
	k := c.Condition(api.ConditionDrained)
	return !c.Deleting.IsZero() && (k.Status == "True" || k.Reason == api.ReasonDraining) &&
		!now.Before(k.Since.Add(slowDrainAfter))
}

// Is reports whether the condition is True.
func (c Claim) Is(condition string) bool { return c.Condition(condition).Status == "True" }

// Condition returns the condition of that type. A missing one is Unknown since the claim was made.
func (c Claim) Condition(condition string) Condition {
	for _, k := range c.Conditions {
		if k.Type == condition {
			return k
		}
	}
	return Condition{Type: condition, Status: "Unknown", Since: c.Created}
}

// Instance is an EC2 instance that carries the cluster's tag.
type Instance struct {
	ID string `json:"id"`
	// State is pending, running, stopping, stopped, shutting-down or terminated.
	State          string    `json:"state"`
	StateReason    string    `json:"stateReason,omitempty"` // why EC2 changed it last: code, colon, message
	Type           string    `json:"type"`
	Zone           string    `json:"zone"`
	CapacityType   string    `json:"capacityType"`
	ImageID        string    `json:"imageID,omitempty"`
	Launched       time.Time `json:"launched"`
	Claim          string    `json:"claim,omitempty"`    // name of the NodeClaim, from its tag
	ClaimUID       string    `json:"claimUID,omitempty"` // its UID, from its tag
	Batch          string    `json:"batch,omitempty"`    // of claims that it was launched for one of, from its tag
	NodeName       string    `json:"nodeName,omitempty"` // private DNS name
	SubnetID       string    `json:"subnetID,omitempty"`
	SecurityGroups []string  `json:"securityGroups,omitempty"` // ids, sorted
	Reservation    string    `json:"reservation,omitempty"`    // capacity reservation that it is in
	Partition      int32     `json:"partition,omitempty"`      // of its placement group, 0 for none
	Tags           []string  `json:"tags,omitempty"`           // keys, sorted
}

// MayBeNode reports whether a Node of the name may be the instance's: EKS names nodes after the private DNS name or
// after the id of their instance, and lets a kubelet write no Node of another name. While EC2 tells no name any may.
func (i Instance) MayBeNode(name string) bool {
	return i.NodeName == "" || strings.EqualFold(name, i.NodeName) || name == i.ID
}

// Impairment is a status check of EC2 that an instance fails.
type Impairment struct {
	Instance string    `json:"instance"`
	System   bool      `json:"system,omitempty"` // the host's check, not the instance's own
	Since    time.Time `json:"since"`
}

// ScheduledChange is a date on which EC2 reboots, stops or retires an instance, or works on its host.
type ScheduledChange struct {
	Instance string    `json:"instance"`
	Code     string    `json:"code"` // such as instance-retirement
	At       time.Time `json:"at"`   // when that may begin; zero where EC2 does not say
}

// InstanceFilter selects instances. The zero value selects all.
type InstanceFilter struct {
	IDs           []string  // those of these ids; none for whichever
	LaunchedSince time.Time // those launched or started then or later; zero for whenever
}

// Selects reports whether the filter selects the instance.
func (f InstanceFilter) Selects(i Instance) bool {
	return !i.Launched.Before(f.LaunchedSince) && (len(f.IDs) == 0 || slices.Contains(f.IDs, i.ID))
}

// ProviderID is the id under which Kubernetes knows the instance.
func (i Instance) ProviderID() string { return "aws:///" + i.Zone + "/" + i.ID }

// Gone reports whether the instance runs no more and will not come back.
func (i Instance) Gone() bool { return i.State == "shutting-down" || i.State == "terminated" }
