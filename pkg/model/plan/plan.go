package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// Plan is the outcome of packing: nodes to launch, pods that fit where there is room already, and unschedulable pods.
type Plan struct {
	Launches []Launch    // nodes to make for pods
	Existing []Placement // pods that fit on nodes that exist or are on their way
	Unplaced []Unplaced  // pods that get no place
	Skipped  []Skip      // pools that took no part

	Fixed    []Launch  `json:",omitempty"` // nodes that static pools lack; they are for no pods, and no part of Price
	Removals []Removal `json:",omitempty"` // nodes that static pools have too many
	Short    []Skip    `json:",omitempty"` // static pools that lack nodes and cannot get them now

	Stopped *StoppedCapacity `json:",omitempty"` // nil where no buffer asks for stopped capacity

	// Oversized are the DaemonSets that count for no node of some pools, because none of their types holds a pod of
	// theirs beside those of smaller ones.
	Oversized []OversizedDaemon `json:",omitempty"`

	// Unread are pods that run, some for each namespace, whose required anti-affinity nobody looks at.
	Unread []UnreadPod `json:",omitempty"`

	Faults []Fault `json:",omitempty"` // what the decision failed about and was taken without

	// Held are launches that the ceiling of the cluster does not allow now.
	Held []Held `json:",omitempty"`

	// LowerBoundUSD is proven: no plan that gives a place to the same pods costs less, in USD per hour of its launches'
	// choices, with what interruptions are expected to cost. It is 0 when nothing is launched.
	LowerBoundUSD float64
}

// Launch is one node to make.
type Launch struct {
	Pool         string                 // name of the NodePool
	Class        string                 // name of the EC2NodeClass
	Requirements requirements.Set       // what the claim demands, its types, zones and capacity types included
	Labels       map[string]string      // of the claim, and so of the node
	Annotations  map[string]string      // of the claim
	Taints       []cluster.Taint        // of the node for good
	Startup      []cluster.Taint        // of the node until something takes them away
	Requests     resources.List         // of the pods and the daemons
	Pods         []string               // namespace/name, sorted
	Choice       instancetypes.Offering // the cheapest offering that holds the pods
	Types        []string               // every type that may be launched, cheapest first

	// why its claim is stored and its instance started only later; empty where it may start now
	Waits string `json:",omitempty"`
}

// Placement says that a pod fits on a node that exists or is on its way.
type Placement struct {
	Pod  string // namespace/name
	Node string // node name, or the claim's name while it has no node
}

// Unplaced is an unschedulable pod and every reason for it.
type Unplaced struct {
	Pod   string   // namespace/name
	Why   []string // sentences, at least one
	Fault bool     `json:",omitempty"` // no rule keeps it from a place: the decision fails about it
}

// Message joins the reasons for people.
func (u Unplaced) Message() string { return strings.Join(u.Why, "; ") }

// Fault is a part of a pass that the program failed about. The pass goes on without it.
type Fault struct {
	Kind  cluster.PartKind // empty where nothing is found without which the decision does not fail
	Name  string           // of the part
	Pods  []string         `json:",omitempty"` // namespace/name, sorted: those that are concerned
	Why   string           // what the program said
	Stack []string         `json:"-"` // where, innermost first: it differs between builds, and a plan does not
}

// String says it in one line.
func (f Fault) String() string {
	out := fmt.Sprintf("fault: %s: %s", cmp.Or(strings.TrimSpace(string(f.Kind)+" "+f.Name), "whatever is left out"),
		f.Why)
	if len(f.Pods) > 0 {
		out += " (" + NamePods(f.Pods) + ")"
	}
	return out
}

// Skip is a pool that took no part in the pass.
type Skip struct {
	Pool string // name of the NodePool
	Why  string // a sentence
}

// Held are launches of a pool that the ceiling of the cluster does not allow now.
type Held struct {
	Pool  string // name of the NodePool
	Nodes int    // launches that are held
	Why   string // a sentence: which ceiling
}

// OversizedDaemon is a DaemonSet whose pods fit no type of these pools beside those of smaller DaemonSets.
type OversizedDaemon struct {
	DaemonSet string   // namespace/name
	Need      string   // of one pod, in words
	Pools     []string // names of the NodePools
}

// Message says it for people.
func (d OversizedDaemon) Message() string {
	return fmt.Sprintf("no instance type of NodePool %s holds %s beside smaller DaemonSets, so its pods have no place there and new nodes keep no room for them",
		lists.Name(d.Pools, ", "), d.Need)
}

// UnreadPod is a pod whose required anti-affinity is beyond what its namespace may have.
type UnreadPod struct {
	Pod, Node   string // namespace/name; where it runs
	Terms, Read int    // of all running pods of its namespace; about other namespaces, or about its own
}

// Message says it for people.
func (u UnreadPod) Message() string {
	return fmt.Sprintf("running pods of its namespace have %d terms of required anti-affinity that differ, and %d are read: this pod's is not, so its node %s takes no further pods; let pods share terms",
		u.Terms, u.Read, u.Node)
}

// Removal is a NodeClaim that goes because its static pool has too many.
type Removal struct {
	Claim string // name of the NodeClaim
	Pool  string // name of the NodePool
	Why   string // a sentence: why this one
}

// StoppedCapacity is the part of a plan about nodes whose instances are stopped.
type StoppedCapacity struct {
	Starts   []Start     `json:",omitempty"` // sorted by claim
	Filled   bool        // Placed and Unplaced were looked for in this pass
	Placed   []Placement `json:",omitempty"` // pods of buffers that a node is kept for, with its claim
	Unplaced []Unplaced  `json:",omitempty"` // pods of buffers that no node is kept for, and none can be made
}

// Start is a stopped instance that is started for pods.
type Start struct {
	Claim string   // name of the NodeClaim
	Pods  []string // namespace/name, sorted
}

// String says what is started for which pods.
func (s Start) String() string {
	return "start the instance of " + s.Claim + " for " + NamePods(s.Pods)
}

// ForStoppedCapacity reports whether the node is made to be stopped.
func (l Launch) ForStoppedCapacity() bool {
	return l.Annotations[api.AnnotationStoppedCapacity] == "true"
}

// Starts are the stopped instances that the plan starts.
func (p Plan) Starts() []Start {
	if p.Stopped == nil {
		return nil
	}
	return p.Stopped.Starts
}

// Clone is a copy whose labels and annotations may be changed.
func (l Launch) Clone() Launch {
	l.Labels, l.Annotations = maps.Clone(l.Labels), maps.Clone(l.Annotations)
	return l
}

// AllLaunches are the nodes that the plan makes, for pods and for static pools.
func (p Plan) AllLaunches() []Launch { return slices.Concat(p.Launches, p.Fixed) }

// BoundGap returns the cost of the plan above the lower bound, as a part of the bound: 0.02 for 2 %. It is 0 without a
// bound.
func (p Plan) BoundGap() float64 {
	if p.LowerBoundUSD <= 0 {
		return 0
	}
	return p.TotalPrice()/p.LowerBoundUSD - 1
}

// TotalPrice returns the price of the launches' chosen offerings together, in USD per hour.
func (p Plan) TotalPrice() float64 {
	var sum float64
	for _, l := range p.Launches {
		sum += l.Choice.Price
	}
	return sum
}
