package cluster

import (
	"cmp"
	"slices"
	"time"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// Snapshot is everything a decision may see.
type Snapshot struct {
	Now      time.Time             `json:"now"`
	Pods     []Pod                 `json:"pods,omitempty"` // every pod that has not ended
	Nodes    []Node                `json:"nodes,omitempty"`
	Claims   []Claim               `json:"claims,omitempty"`
	Pools    []Pool                `json:"pools,omitempty"`
	Classes  []instancetypes.Class `json:"classes,omitempty"`
	Overlays []Overlay             `json:"overlays,omitempty"`
	Rollouts []Rollout             `json:"rollouts,omitempty"`
	Stopped  []StoppedBuffer       `json:"stopped,omitempty"` // buffers of stopped capacity
	// one pod of each DaemonSet: its newest, or as its template makes it
	Daemons    []Pod                 `json:"daemons,omitempty"`
	Namespaces []Namespace           `json:"namespaces,omitempty"`
	Budgets    []PodDisruptionBudget `json:"budgets,omitempty"`
	Instances  []Instance            `json:"instances,omitempty"` // only where the pass asked EC2

	Impaired []Impairment      `json:"impaired,omitempty"` // only where the pass asked EC2
	Changes  []ScheduledChange `json:"changes,omitempty"`  // only where the pass asked EC2
	// when EC2 told the two above of all running instances; zero where nobody asked, or it did not tell
	StatusAt time.Time `json:"statusAt,omitzero"`
	// zones that ARC shifts traffic away from; nil where nobody asked, or nobody knows
	Shifts *ZonalShifts `json:"shifts,omitempty"`
	// of nodes that are drained, only where the pass asked for them
	Attachments []Attachment `json:"attachments,omitempty"`
	Devices     Devices      `json:"devices,omitzero"`

	// launches that the pass may begin, because the API server refused requests as too many; 0 for any number
	Pace int `json:"pace,omitempty"`
	// the pass before this one in the same invocation, with what it read; 0 for none
	PassTook time.Duration `json:"passTook,omitempty"`

	Aside []Aside `json:"aside,omitempty"` // what decisions before failed about
	// names of nodes that were bought in vain, sorted: kube-scheduler refuses them for their pods
	Unused []string `json:"unused,omitempty"`

	Catalog     instancetypes.Catalog               `json:"catalog"`
	Unavailable []instancetypes.UnavailableOffering `json:"soldOut,omitempty"`
	Rules       Settings                            `json:"rules"`

	// is told how the decision goes; nil for nobody, as in whatever was stored
	Follower StageFollower `json:"-"`
}

// Settings are the settings that change decisions.
type Settings struct {
	// keep new nodes for the pods they were planned for, see package nomination
	NominatedPodsOnly bool `json:"hold,omitempty"`
	IgnorePreferences bool `json:"ignorePreferences,omitempty"`
	// a minValues that cannot be met is lowered, instead of refusing the pool
	RelaxMinValues bool `json:"relaxMinValues,omitempty"`
	// new claims in one pass, 0 for no limit, NoClaims for none
	MaxClaims int `json:"maxClaims,omitempty"`
	// of the whole cluster
	Ceiling Ceiling `json:"ceiling,omitzero"`
	// prices are of instances alone, without volumes and public addresses
	InstancePrices bool `json:"instancePrices,omitempty"`
	// what one more node costs beside its price, USD per hour, where plans are compared; 0 for 0.0002
	PerNodeOverheadUSD float64 `json:"perNodeOverheadUSD,omitempty"`
	// what the owner pays per node beside AWS, USD per hour, where the pool does not say; a part of a node's price
	DeclaredNodeUSD float64 `json:"declaredNodeUSD,omitempty"`
	// how much dearer than the chosen type another may be that a launch names, as a factor; 0 for 1.2
	InstanceTypePriceFactor float64 `json:"instanceTypePriceFactor,omitempty"`
	// types that a spot launch names at least where there are so many, at any price; 0 for 15
	MinSpotInstanceTypes int `json:"minSpotInstanceTypes,omitempty"`
	// steps that make a plan cheaper, at most; 0 for as many as pay, NoIterations for none
	PackingIterations int `json:"packingIterations,omitempty"`
	// how many milliseconds of one core a plan may take about, counted in work and not by a clock; 0 for 4,000
	PackingMilliseconds int `json:"packingMilliseconds,omitempty"`
	// how many milliseconds of one core all pods of a pass may take before anything is searched for, by what they ask
	// for; 0 for 10,000
	DemandMilliseconds int `json:"demandMilliseconds,omitempty"`
	// how many of these the pods of one namespace may take while pods of others wait; 0 for all
	NamespaceMilliseconds int `json:"namespaceMilliseconds,omitempty"`
	// how many times the usual work may go into a plan and its bound, to measure what more would do; 0 for once. No
	// setting asks for it, and it is not stored.
	PackingEffort int `json:"-"`
	// part of all spot capacity (vCPU) that may be in one instance type in one zone, where others are to be had; 0 for
	// 0.8, 1 for all
	MaxSpotPoolFraction   float64       `json:"maxSpotPoolFraction,omitempty"`
	LaunchTimeout         time.Duration `json:"launchTimeout,omitempty"`
	RegistrationTimeout   time.Duration `json:"registrationTimeout,omitempty"`
	InitializationTimeout time.Duration `json:"initializationTimeout,omitempty"`
	// how long a drained node waits for its volumes to be detached, 0 for ever
	DetachTimeout time.Duration `json:"detachTimeout,omitempty"`
	// nodes that stay unhealthy are replaced by force
	NodeRepair bool `json:"nodeRepair,omitempty"`
	// an instance younger than this is never called leaked
	GarbageCollectionMinAge time.Duration `json:"garbageCollectionMinAge,omitempty"`
	// within this a move of pods must earn what it costs; 0 for 1 h
	ConsolidationPayback time.Duration `json:"payback,omitempty"`
	// what moving one ordinary pod costs; 0 for 0.0012
	PodEvictionCostUSD float64 `json:"moveUSD,omitempty"`
	// what-if questions of one search for disruptions; 0 for 24
	ConsolidationMaxEvaluations int `json:"consolidationMaxEvaluations,omitempty"`
	// spot nodes are not replaced by spot nodes, only deleted or replaced by on-demand ones
	NoSpotToSpotConsolidation bool `json:"noSpotToSpotConsolidation,omitempty"`
	// drifted nodes with pods that one command replaces at most; 0 for 1
	DriftedPerCommand int `json:"driftedPerCommand,omitempty"`
	// decide about disruption and tell, begin nothing
	ReportDisruption bool `json:"reportDisruption,omitempty"`
	// part of an instance's memory that the VM keeps
	MemoryOverhead float64 `json:"memoryOverhead,omitempty"`
	// network interfaces that pods do not get
	ReservedENIs int64 `json:"reservedENIs,omitempty"`
	// selections of capacity reservations are not read; EC2 matches open ones
	OpenReservations bool `json:"openReservations,omitempty"`
	// pods and services have addresses of IPv6
	IPv6 bool `json:"ipv6,omitempty"`
}

// defaultSpotTypes is the default of LeastSpotTypes, as Karpenter has it.
const defaultSpotTypes = 15

// LeastSpotTypes returns the least number of types that a spot launch names where there are so many, at any price.
func (s Settings) LeastSpotTypes() int { return cmp.Or(s.MinSpotInstanceTypes, defaultSpotTypes) }

// defaultPriceFactor is the default of PriceFactor.
const defaultPriceFactor = 1.2

// PriceFactor returns how much dearer than the chosen type another may be that a launch names, as a factor.
func (s Settings) PriceFactor() float64 { return cmp.Or(s.InstanceTypePriceFactor, defaultPriceFactor) }

// defaultSpotPoolFraction is the default of SpotPoolFraction.
const defaultSpotPoolFraction = 0.8

// SpotPoolFraction returns the part of all spot capacity that may be in one instance type in one zone.
func (s Settings) SpotPoolFraction() float64 {
	return cmp.Or(s.MaxSpotPoolFraction, defaultSpotPoolFraction)
}

// defaultEvictionCostUSD is the default of EvictionCostUSD and of the setting podEvictionCostUSD.
const defaultEvictionCostUSD = 0.0012

// EvictionCostUSD returns what moving one ordinary pod costs.
func (s Settings) EvictionCostUSD() float64 {
	return cmp.Or(s.PodEvictionCostUSD, defaultEvictionCostUSD)
}

// defaultDemandMilliseconds is the demand budget where the settings do not say.
const defaultDemandMilliseconds = 10_000

// DemandBudget returns the milliseconds of one core that all pods of a pass may take before anything is searched for.
func (s Settings) DemandBudget() int { return cmp.Or(s.DemandMilliseconds, defaultDemandMilliseconds) }

// NoClaims as the number of new claims of a pass allows none.
const NoClaims = -1

// NoIterations as the number of search steps takes plans as they come first.
const NoIterations = -1

// ZonalShifts are the zones, by their ids and sorted, that ARC shifts the cluster's traffic away from.
type ZonalShifts struct {
	ZoneIDs []string `json:"zoneIDs,omitempty"`
}

// Namespace is a namespace with its labels.
type Namespace struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
}

// Attachment is a persistent volume attached to a node. Those of volumes that no PersistentVolume stands for are left
// out.
type Attachment struct {
	Node   string `json:"node"`
	Volume string `json:"volume"`           // of the PersistentVolume
	Claim  string `json:"claim,omitempty"`  // namespace/name of the claim that it is bound to
	Shared bool   `json:"shared,omitempty"` // other nodes may attach it at the same time
}

// PodDisruptionBudget holds what matters of one for evicting pods.
type PodDisruptionBudget struct {
	Namespace          string    `json:"namespace"`
	Name               string    `json:"name"`
	Selector           *Selector `json:"selector"`
	DisruptionsAllowed int32     `json:"disruptionsAllowed"`
	AlwaysAllowUnready bool      `json:"alwaysAllowUnready,omitempty"`

	// HealthyEnough says that as many of its pods are healthy as it wants: the eviction API lets those go that are not.
	HealthyEnough bool `json:"healthyEnough,omitempty"`

	// FullyBlocking says that it allows nothing however healthy its pods are: maxUnavailable is 0 or 0%, minAvailable
	// is 100%, or its controller wants as many healthy pods as it expects.
	FullyBlocking bool `json:"fullyBlocking,omitempty"`

	// SelectsAll says that its selector is too large to be read, and stands for that of all pods.
	SelectsAll bool `json:"selectsAll,omitempty"`
}

// String names the budget, and says what is special about its selector.
func (b PodDisruptionBudget) String() string {
	if b.SelectsAll {
		return b.Namespace + "/" + b.Name + " (its selector is too large: it counts for all pods of the namespace)"
	}
	return b.Namespace + "/" + b.Name
}

// Pool is a NodePool as read.
type Pool struct {
	Name    string `json:"name"`
	UID     string `json:"uid,omitempty"`
	Weight  int32  `json:"weight,omitempty"`
	Class   string `json:"class"`
	Ready   bool   `json:"ready"`
	Message string `json:"message,omitempty"` // why it is not ready
	// its status is of an older spec: refresh has not looked at it since
	Unseen   bool `json:"unseen,omitempty"`
	Deleting bool `json:"deleting,omitempty"`
	Static   bool `json:"static,omitempty"` // replicas is set
	// of a static pool: how many nodes it is to have, with pods or without
	Replicas      int64             `json:"replicas,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`      // of the template
	Annotations   map[string]string `json:"annotations,omitempty"` // of the template
	Requirements  requirements.Set  `json:"requirements"`
	Taints        []Taint           `json:"taints,omitempty"`
	StartupTaints []Taint           `json:"startupTaints,omitempty"`
	Limits        resources.List    `json:"limits"`
	// names of the resources that Limits holds, zero limits included; may hold "nodes"
	Limited          []string       `json:"limited,omitempty"`
	ExpireAfter      time.Duration  `json:"expireAfter,omitempty"` // 0 for Never
	TerminationGrace *time.Duration `json:"terminationGrace,omitempty"`
	Hash             string         `json:"hash,omitempty"` // static drift hash of the template
	// status.resources: what its nodes have, "nodes" included
	Counted   resources.List `json:"counted"`
	Uncounted bool           `json:"uncounted,omitempty"` // status.resources was never written
	// ids of zones of which an event on the pool says that traffic is shifted away from them, sorted
	ToldShifts []string   `json:"toldShifts,omitempty"`
	Disruption Disruption `json:"disruption,omitzero"`
	// what the owner pays per node of it beside AWS, USD per hour; nil for what the settings say
	DeclaredNodeUSD *float64 `json:"declaredNodeUSD,omitempty"`

	Revision string       `json:"revision,omitempty"` // of its class, to launch with; empty for the class as it is
	Rollout  *PoolRollout `json:"rollout,omitempty"`  // nil for a pool that no NodeRollout is about
}

// DeclaredCost returns what the owner pays per node of the pool beside AWS, in USD per hour: what the pool's annotation
// says, or else the setting. It is 0 where prices are those of instances alone.
func (s Snapshot) DeclaredCost(p Pool) float64 {
	switch {
	case s.Rules.InstancePrices:
		return 0
	case p.DeclaredNodeUSD != nil:
		return *p.DeclaredNodeUSD
	}
	return s.Rules.DeclaredNodeUSD
}

// Disruption holds the rules by which nodes of a pool are disrupted voluntarily.
type Disruption struct {
	Policy  string        `json:"policy,omitempty"` // WhenEmpty, WhenEmptyOrUnderutilized or Balanced
	After   time.Duration `json:"after,omitempty"`  // how long a node must be quiet before it is consolidated
	Never   bool          `json:"never,omitempty"`  // instead of After: not at all
	Budgets []NodeBudget  `json:"budgets,omitempty"`
	// IANA name in which the budgets' schedules are read, empty for UTC
	TimeZone string `json:"timeZone,omitempty"`
	// cron, when the pool falls asleep: no new nodes, and those there are go; empty for never
	SleepAt  string        `json:"sleepAt,omitempty"`
	SleepFor time.Duration `json:"hibernationDuration,omitempty"` // how long it sleeps from each start
	// IANA name in which SleepAt is read, empty for TimeZone
	SleepZone  string `json:"sleepZone,omitempty"`
	ReportOnly bool   `json:"reportOnly,omitempty"` // decide and tell, change nothing
	// nodes that expire are replaced like drifted ones, instead of by force
	ExpireGently bool `json:"expireGently,omitempty"`
	// whether spot nodes are replaced by spot nodes; nil for what the settings say
	SpotToSpot *bool `json:"spotToSpot,omitempty"`
	// per hour: a consolidation that saves less is not worth it
	SavesUSD     float64 `json:"savesUSD,omitempty"`
	SavesPercent float64 `json:"savesPercent,omitempty"` // the same, of the price of the nodes that go
	// what of this cannot be understood; then ReportOnly is true
	Message string `json:"message,omitempty"`
}

// NodeBudget bounds how many nodes of a pool are disrupted at a time.
type NodeBudget struct {
	Every    bool          `json:"every,omitempty"`    // it is for every reason, and Reasons is not read
	Reasons  []string      `json:"reasons,omitempty"`  // Underutilized, Empty, Drifted, Unhealthy
	Nodes    string        `json:"nodes"`              // a count or a percentage
	Schedule string        `json:"schedule,omitempty"` // cron; empty for always
	Duration time.Duration `json:"duration,omitempty"` // how long it counts from each start
}

// Overlay is a NodeOverlay as read: a correction of what instance types cost or hold.
type Overlay struct {
	Name   string `json:"name"`
	Weight int32  `json:"weight,omitempty"`
	// on types, offerings, the template's labels and the pool's name
	Requirements requirements.Set `json:"requirements"`
	Price        *float64         `json:"price,omitempty"`  // USD per hour, instead of what AWS says
	Change       *PriceChange     `json:"change,omitempty"` // or what to add to that
	// resources that a type has, sorted by name; zero counts are meant
	Capacity []resources.Extended `json:"capacity,omitempty"`
	Message  string               `json:"message,omitempty"` // why it is not valid
}

// PriceChange is an addition to a price; one that is below zero lowers it.
type PriceChange struct {
	USD     float64 `json:"usd,omitempty"`     // per hour
	Percent float64 `json:"percent,omitempty"` // of the price
}

// ClassOf returns the resolved class of that name.
func (s Snapshot) ClassOf(name string) (instancetypes.Class, bool) {
	return lists.Find(s.Classes, func(c instancetypes.Class) bool { return c.Name == name })
}

// PoolOf returns the pool of that name.
func (s Snapshot) PoolOf(name string) (Pool, bool) {
	return lists.Find(s.Pools, func(p Pool) bool { return p.Name == name })
}

// spares reports whether the budget lets the pod be evicted whatever it allows, because the pod is not ready.
func (b PodDisruptionBudget) spares(p *Pod) bool {
	return (b.AlwaysAllowUnready || b.HealthyEnough) && !p.Ready
}

// Minute counts minutes: what cannot all be done in one pass takes turns by it.
func (s *Snapshot) Minute() uint64 { return uint64(s.Now.Unix() / 60) }

// HasSoftTaints reports whether any node or pool has a taint that pods may have to put up with.
func (s Snapshot) HasSoftTaints() bool {
	return slices.ContainsFunc(s.Pools, func(p Pool) bool { return slices.ContainsFunc(p.Taints, Taint.isSoft) }) ||
		slices.ContainsFunc(s.Nodes, func(n Node) bool { return slices.ContainsFunc(n.Taints, Taint.isSoft) })
}

// isSoft reports whether pods that do not tolerate the taint may be on its nodes.
func (t Taint) isSoft() bool { return t.Effect == "PreferNoSchedule" }
