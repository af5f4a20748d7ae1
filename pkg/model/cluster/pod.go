package cluster

import (
	"slices"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// How words of Unmodelled begin that are about what the pod selects nodes by: they are gone where that is.
const (
	SelectorRefused = "node selector: "
	AffinityRefused = "node affinity"
)

// Pod holds what matters of a pod for placing, draining and counting it.
type Pod struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	UID       string            `json:"uid,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Created   time.Time         `json:"created"`
	Started   time.Time         `json:"started,omitzero"` // status.startTime
	Priority  int32             `json:"priority,omitempty"`
	// priority class system-cluster-critical or system-node-critical
	Critical bool  `json:"critical,omitempty"`
	Owner    Owner `json:"owner,omitempty"`
	// UID of the object that makes another pod in its stead, empty for none
	Controller string `json:"controller,omitempty"`
	Phase      string `json:"phase,omitempty"` // Pending, Running, Succeeded, Failed
	Ready      bool   `json:"ready,omitempty"`
	// when it was bound and last became ready; only metrics read them
	Bound      time.Time `json:"-"`
	ReadySince time.Time `json:"-"`
	// when it was Ready last; only rollouts read it
	UnreadySince time.Time `json:"-"`
	Trouble      string    `json:"-"` // Crashed or OOMKilled: how a container of it ended last; only rollouts read it
	NodeName     string    `json:"nodeName,omitempty"`
	Nominated    string    `json:"nominated,omitempty"` // status.nominatedNodeName
	// the scheduler said PodScheduled=False, reason Unschedulable
	Unscheduled bool `json:"unscheduled,omitempty"`
	// why, in the scheduler's words
	Unschedulable string `json:"-"`
	// kube-scheduler has not tried to place it yet; see ExpectUnscheduled
	Untried bool `json:"-"`
	// deletionTimestamp, which already contains the grace period
	Deleting time.Time `json:"deleting,omitzero"`
	GraceSec int64     `json:"graceSec,omitempty"` // terminationGracePeriodSeconds
	// value of the annotation karpenter.sh/do-not-disrupt
	DoNotDisrupt string `json:"doNotDisrupt,omitempty"`
	// annotation karpenter.sh/disruption-cost, without it controller.kubernetes.io/pod-deletion-cost
	DeletionCost int32 `json:"deletionCost,omitempty"`

	Need         resources.List    `json:"need"`                 // requests, one pods unit included
	NeedAnew     resources.List    `json:"needAnew,omitzero"`    // of another in its stead, where that is not Need
	NeedBounds   *NeedBounds       `json:"needBounds,omitempty"` // nil where its requests say all of Need
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// required terms, any one of which must hold
	NodeAffinity [][]requirements.Requirement `json:"nodeAffinity,omitempty"`
	NodePrefers  []WeightedRequirements       `json:"nodePrefers,omitempty"`
	Tolerations  []Toleration                 `json:"tolerations,omitempty"`
	// values of the taint joiner.sh/nominated-pods-only that it tolerates, beside Tolerations
	Holds        []string               `json:"holds,omitempty"`
	Spread       []Spread               `json:"spread,omitempty"`
	Affinity     []AffinityTerm         `json:"affinity,omitempty"`     // required
	AntiAffinity []AffinityTerm         `json:"antiAffinity,omitempty"` // required
	Prefers      []WeightedAffinityTerm `json:"prefers,omitempty"`      // preferred pod affinity
	Avoids       []WeightedAffinityTerm `json:"avoids,omitempty"`       // preferred pod anti-affinity
	HostPorts    []HostPort             `json:"hostPorts,omitempty"`
	// alternatives that its volumes allow, none for no limit
	VolumeZones [][]requirements.Requirement `json:"volumeZones,omitempty"`
	Volumes     []Volume                     `json:"volumes,omitempty"` // sorted by driver and id
	// what it requires of a node beside labels and room, sorted: see RequiredFeature and RequiredDriver
	Requires []string `json:"requires,omitempty"`
	// constraints that Joiner does not model, in words
	Unmodelled []string `json:"unmodelled,omitempty"`

	// UnreadClaims are the PersistentVolumeClaims of its volumes, by name, as long as VolumeZones and Volumes do not
	// say what these allow.
	UnreadClaims []string `json:"unreadClaims,omitempty"`
	// DeviceTemplates are the ResourceClaimTemplates of its claims, by name, sorted and each as often as it names it,
	// as long as Need does not contain the devices that they ask for.
	DeviceTemplates []string `json:"deviceTemplates,omitempty"`
	// DeviceClaims are the ResourceClaims that it names itself, sorted, as long as nobody has said what they allow.
	DeviceClaims []string `json:"deviceClaims,omitempty"`

	// AskAgain is set when the eviction API refused this pod lately: the time before which it is not asked again.
	AskAgain time.Time `json:"askAgain,omitzero"`

	// Virtual says that there is no such pod: it stands for room that a CapacityBuffer keeps free. It is packed as any
	// other, but nothing is written about it, and no node is spared for its sake.
	Virtual bool `json:"virtual,omitempty"`
}

// NeedBounds holds the parts of a pod's need that people cannot change by its requests alone.
type NeedBounds struct {
	Overhead resources.List `json:"overhead,omitzero"` // that its RuntimeClass adds
	// what its containers request together of what the pod requests as a whole, which must not be less
	Containers resources.List `json:"containers,omitzero"`
}

// Volume is the place that one persistent volume takes of a node's limit. Two pods with the same volume take it once.
type Volume struct {
	Driver string `json:"driver"` // CSI driver
	ID     string `json:"id"`     // of the volume, or of its claim while there is none
}

// Owner is the kind of controller a pod belongs to.
type Owner string

// The owners that change how a pod is treated.
const (
	OwnerNone        Owner = ""
	OwnerDaemonSet   Owner = "DaemonSet"
	OwnerNode        Owner = "Node" // a static pod
	OwnerStatefulSet Owner = "StatefulSet"
	OwnerOther       Owner = "Other"
)

// Key names the pod as namespace/name.
func (p Pod) Key() string { return p.Namespace + "/" + p.Name }

// NextNeed returns what another pod in its stead asks for.
func (p Pod) NextNeed() resources.List {
	if p.NeedAnew.IsZero() {
		return p.Need
	}
	return p.NeedAnew
}

// Terminal reports whether the pod has ended.
func (p Pod) Terminal() bool { return p.Phase == "Succeeded" || p.Phase == "Failed" }

// Terminating reports whether the pod is being deleted.
func (p Pod) Terminating() bool { return !p.Deleting.IsZero() }

// Active reports whether the pod has neither ended nor is being deleted.
func (p Pod) Active() bool { return !p.Terminal() && !p.Terminating() }

// Provisionable reports whether a node should be found or made for the pod. Unlike in Karpenter that is not so for pods
// that are being deleted.
func (p Pod) Provisionable() bool {
	return p.Unscheduled && p.NodeName == "" && p.Nominated == "" && p.Active() &&
		p.Owner != OwnerDaemonSet && p.Owner != OwnerNode && !p.needsUnmanagedNode()
}

// needsUnmanagedNode reports whether each of the pod's required terms asks for nodes of no pool.
func (p Pod) needsUnmanagedNode() bool {
	outside := func(r requirements.Requirement) bool {
		return r.Key == api.LabelNodePool && r.Operator() == requirements.DoesNotExist
	}
	inPool := func(term []requirements.Requirement) bool { return !slices.ContainsFunc(term, outside) }
	return len(p.NodeAffinity) > 0 && !slices.ContainsFunc(p.NodeAffinity, inPool)
}

// Reschedulable reports whether the pod will need another node when its own goes away.
func (p Pod) Reschedulable() bool {
	return (p.Active() || p.Owner == OwnerStatefulSet && p.Terminating() && !p.Terminal()) &&
		p.Owner != OwnerDaemonSet && p.Owner != OwnerNode
}

// EvictionCost returns the cost of evicting the pod, from -10 to 10. A pod with neither priority nor deletion cost
// costs 1.
func (p Pod) EvictionCost() float64 {
	const deletion, priority = 1 << 27, 1 << 25
	return min(max(1+float64(p.DeletionCost)/deletion+float64(p.Priority)/priority, -10), 10)
}

// WeightedRequirements is a preferred node affinity term.
type WeightedRequirements struct {
	Weight       int32                      `json:"weight"`
	Requirements []requirements.Requirement `json:"requirements"`
}

// Spread is a topology spread constraint.
type Spread struct {
	Key        string `json:"key"` // topology key
	MaxSkew    int32  `json:"maxSkew"`
	MinDomains int32  `json:"minDomains,omitempty"`
	Soft       bool   `json:"soft,omitempty"` // ScheduleAnyway
	// matchLabelKeys are already folded in; nil selects nothing
	Selector           *Selector `json:"selector"`
	IgnoreNodeAffinity bool      `json:"ignoreNodeAffinity,omitempty"` // nodeAffinityPolicy Ignore
	HonorTaints        bool      `json:"honorTaints,omitempty"`        // nodeTaintsPolicy Honor
}

// AffinityTerm is a pod affinity or anti-affinity term.
type AffinityTerm struct {
	Key      string    `json:"key"`      // topology key
	Selector *Selector `json:"selector"` // nil selects nothing
	// sorted; with no namespace selector and no names: the pod's own
	Namespaces        []string  `json:"namespaces,omitempty"`
	NamespaceSelector *Selector `json:"namespaceSelector,omitempty"`
}

// HasPreferences reports whether the pod prefers nodes or neighbours that it does not require.
func (p Pod) HasPreferences() bool {
	return len(p.NodePrefers)+len(p.Prefers)+len(p.Avoids) > 0 ||
		slices.ContainsFunc(p.Spread, func(s Spread) bool { return s.Soft })
}

// WeightedAffinityTerm is a preferred pod affinity or anti-affinity term.
type WeightedAffinityTerm struct {
	Weight int32        `json:"weight"`
	Term   AffinityTerm `json:"term"`
}

// Selector selects things by their labels: all requirements must hold, an empty one selects everything.
type Selector struct {
	Requirements []requirements.Requirement `json:"requirements,omitempty"` // sorted by key
}

// Matches reports whether the selector selects a thing with these labels. A nil selector selects nothing.
func (s *Selector) Matches(labels map[string]string) bool {
	return s != nil &&
		!slices.ContainsFunc(s.Requirements, func(r requirements.Requirement) bool { return !r.Matches(labels) })
}

// HostPort is a port that a pod takes on its node.
type HostPort struct {
	Protocol string `json:"protocol"`
	IP       string `json:"ip"` // 0.0.0.0 when the pod names none
	Port     int32  `json:"port"`
}

// PortsConflict reports whether pods with these host ports cannot share a node.
func PortsConflict(a, b []HostPort) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Port == y.Port && x.Protocol == y.Protocol && (x.IP == y.IP || anyIP(x.IP) || anyIP(y.IP)) {
				return true
			}
		}
	}
	return false
}

func anyIP(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }
