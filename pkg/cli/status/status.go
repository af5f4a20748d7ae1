package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/provisioning"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/whatif"
)

// View is the picture of a cluster at one time.
type View struct {
	Time time.Time `json:"time"` // of the snapshot
	// sorted by name; those that nobody of us manages come last, without a name
	Pools []NodePool `json:"pools"`
	// pods that wait for a node, those that get none first, then the oldest
	Pending  []Pod   `json:"pending,omitempty"`
	Total    Sum     `json:"total"`              // of all Pools
	Launches int     `json:"launches,omitempty"` // new nodes that the pods that wait would get
	AddsUSD  float64 `json:"addsUSD,omitempty"`  // what those cost, per hour

	Rollouts []string `json:"rollouts,omitempty"` // what each NodeRollout is at
	Buffers  []Buffer `json:"buffers,omitempty"`  // of stopped capacity
	Starting int      `json:"starting,omitempty"` // nodes of stopped capacity that were started for pods just now
	// of the stack, sorted by name; none where AWS was not asked
	Functions []Function `json:"functions,omitempty"`
	// what keeps nodes from disruption, the dearest first; only where it was asked for
	Protections []whatif.Protection `json:"protections,omitempty"`
	// where the time for the picture went, in order; a pass of a function reads and decides the same
	Steps []Step `json:"steps,omitempty"`
}

// Function is a Lambda function as it is deployed.
type Function struct {
	Name    string        `json:"name"`              // in AWS Lambda
	Version string        `json:"version,omitempty"` // of Joiner; empty for a release that does not say
	Age     time.Duration `json:"ageNanoseconds"`    // of its code or its settings
	State   string        `json:"state"`             // of Lambda, or missing
}

// Step is a part of the work and how long it took.
type Step struct {
	Name string        `json:"name"`            // what was done, such as reading the cluster
	Took time.Duration `json:"tookNanoseconds"` // of wall-clock time
}

// NodePool is the nodes of one NodePool.
type NodePool struct {
	Name    string `json:"name,omitempty"`    // empty for nodes of no NodePool
	Problem string `json:"problem,omitempty"` // why it is not ready
	// Asleep says that nothing is launched from it and its nodes go, until Wakes (zero: nobody knows).
	Asleep   bool      `json:"asleep,omitempty"`
	Wakes    time.Time `json:"wakes,omitzero"`     // when Asleep ends
	LimitUSD *float64  `json:"limitUSD,omitempty"` // what its nodes may cost per hour, nil for no such limit
	Sum      Sum       `json:"sum"`                // of Nodes
	Nodes    []Node    `json:"nodes"`              // sorted by name
}

// Sum holds the totals of some nodes.
type Sum struct {
	Nodes     int     `json:"nodes"`     // NodeClaims without a node among them
	Pods      int     `json:"pods"`      // on the nodes
	HourlyUSD float64 `json:"hourlyUSD"` // of the nodes with a known price
	// parts of HourlyUSD; the rest is for instances
	Parts instancetypes.NodeCost `json:"parts,omitzero"`
	// nodes whose price nobody knows; they count for nothing in HourlyUSD
	Unpriced int       `json:"unpriced,omitempty"`
	CPU      FillLevel `json:"cpu"`    // millicores
	Memory   FillLevel `json:"memory"` // bytes
}

// FillLevel holds how much of a room is taken by what pods ask for.
type FillLevel struct {
	Used int64 `json:"used"` // what pods ask for, in millicores or bytes
	Room int64 `json:"room"` // allocatable of the nodes, in the same unit
}

// TakenPart is the taken part of the room, 0 to 1 and more where pods ask for more than there is; 0 without room.
func (f FillLevel) TakenPart() float64 {
	if f.Room <= 0 {
		return 0
	}
	return float64(f.Used) / float64(f.Room)
}

func (f FillLevel) addFill(o FillLevel) FillLevel { return FillLevel{f.Used + o.Used, f.Room + o.Room} }

// Node is a node, or a NodeClaim whose node has not come yet.
type Node struct {
	Name         string `json:"name"`                   // of the node; of the NodeClaim while there is no node
	Claim        string `json:"claim,omitempty"`        // name of the NodeClaim; empty without one
	Type         string `json:"type,omitempty"`         // instance type; empty where no label tells
	Zone         string `json:"zone,omitempty"`         // empty where no label tells
	CapacityType string `json:"capacityType,omitempty"` // empty where no label tells
	// launching, starting, held, ready, not ready, cordoned, leaving, stopped or warming
	Phase     string  `json:"phase"`
	HourlyUSD float64 `json:"hourlyUSD"`         // instance and NodeUSD; 0 where the price is not known
	NodeUSD   float64 `json:"nodeUSD,omitempty"` // of it, beside the instance
	// parts of NodeUSD
	Parts  instancetypes.NodeCost `json:"parts,omitzero"`
	Priced bool                   `json:"priced"`         // the price of its instance is known
	Age    time.Duration          `json:"ageNanoseconds"` // of the NodeClaim, else of the node
	Pods   int                    `json:"pods"`           // on it
	CPU    FillLevel              `json:"cpu"`            // millicores
	Memory FillLevel              `json:"memory"`         // bytes
	MayGo  bool                   `json:"mayGo"`          // it may be disrupted by choice
	Why    string                 `json:"why,omitempty"`  // what becomes of it, or what keeps it
}

// Pod is a pod that waits for a node.
type Pod struct {
	Name    string        `json:"name"`             // namespace/name
	Waits   time.Duration `json:"waitsNanoseconds"` // since it was created
	Lost    bool          `json:"lost"`             // nothing that can be launched would hold it
	Asleep  bool          `json:"asleep,omitempty"` // it has a place once NodePools wake
	Outlook string        `json:"outlook"`          // where it will go, or why it has no place: a sentence
}

// ViewOf looks at the snapshot, with what classes may launch; m is what disrupt remembered last, the zero value if
// nobody knows.
func ViewOf(s cluster.Snapshot, m disruption.Memory, sells binpack.Offerings) View {
	// what is asked is who may go, not what would pay best
	s.Rules.PackingIterations, s.Rules.ConsolidationMaxEvaluations = cluster.NoIterations, 1
	fate := disruptionFates(s, m, sells)
	byPool := map[string]*NodePool{}
	for _, p := range s.Pools {
		byPool[p.Name] = &NodePool{Name: p.Name, Asleep: budgets.IsHibernating(p.Disruption, s.Now),
			Wakes: budgets.WakeTime(p.Disruption, s.Now)}
		if slices.Contains(p.Limited, cluster.LimitUSD) {
			usd := float64(p.Limits.Get(cluster.LimitUSD)) / 1e6
			byPool[p.Name].LimitUSD = &usd
		}
		if !p.Ready {
			byPool[p.Name].Problem = cmp.Or(p.Message, "it is not ready")
		}
	}
	on := s.PodsByNode()
	v := View{Time: s.Now}
	for _, r := range s.Rollouts {
		v.Rollouts = append(v.Rollouts, RolloutLine(r))
	}
	v.Buffers, v.Starting = stoppedBuffers(s, sells)
	for _, node := range s.StateNodes() {
		n := nodeOf(s, node, on[node.Name()])
		n.MayGo, n.Why = fate.fateOf(node)
		p := byPool[node.Pool()]
		if p == nil {
			p = &NodePool{Name: node.Pool()}
			if p.Name != "" {
				p.Problem = "there is no such NodePool any more"
			}
			byPool[node.Pool()] = p
		}
		p.Nodes = append(p.Nodes, n)
		p.Sum = p.Sum.addSum(n)
		v.Total = v.Total.addSum(n)
	}
	for _, p := range byPool {
		slices.SortFunc(p.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
		v.Pools = append(v.Pools, *p)
	}
	slices.SortFunc(v.Pools, func(a, b NodePool) int {
		return cmp.Or(cmp.Compare(namedFirst(a.Name), namedFirst(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	v.fillWaiting(s, sells)
	return v
}

// namedFirst puts what has no name behind all others.
func namedFirst(name string) int {
	if name == "" {
		return 1
	}
	return 0
}

func (s Sum) addSum(n Node) Sum {
	s.Nodes++
	s.Pods += n.Pods
	s.HourlyUSD += n.HourlyUSD
	s.Parts.Disks += n.Parts.Disks
	s.Parts.Address += n.Parts.Address
	s.Parts.Declared += n.Parts.Declared
	if !n.Priced {
		s.Unpriced++
	}
	s.CPU, s.Memory = s.CPU.addFill(n.CPU), s.Memory.addFill(n.Memory)
	return s
}

func nodeOf(s cluster.Snapshot, node cluster.StateNode, pods []*cluster.Pod) Node {
	labels, created := node.Labels(), time.Time{}
	n := Node{Name: node.Name(), Phase: phaseOf(node), Pods: len(pods), Type: labels[instancetypes.LabelType],
		Zone:         labels[instancetypes.LabelZone],
		CapacityType: capacityType(labels)}
	if node.Node != nil {
		created = node.Node.Created
	}
	if node.Claim != nil {
		n.Claim, created = node.Claim.Name, node.Claim.Created
	}
	if !created.IsZero() {
		n.Age = max(0, s.Now.Sub(created))
	}
	if n.Type != "" {
		n.HourlyUSD, n.Priced = s.Catalog.Charge(instancetypes.OfferingKey{CapacityType: n.CapacityType, Type: n.Type,
			Zone: n.Zone})
		if n.Priced && node.Claim != nil && !s.Rules.InstancePrices {
			if c, ok := s.ClassOf(node.Claim.Class); ok {
				n.Parts = s.Catalog.NodeCostOf(c)
				pool, _ := s.PoolOf(node.Claim.Pool)
				n.Parts.Declared = s.DeclaredCost(pool)
				n.NodeUSD = n.Parts.Total()
				n.HourlyUSD += n.NodeUSD
			}
		}
		if isStopped(node) { // only its volumes are billed
			n.Parts.Address, n.Parts.Declared = 0, 0
			n.NodeUSD = n.Parts.Total()
			n.HourlyUSD = n.NodeUSD
		}
	}
	var used resources.List
	for _, p := range pods {
		used = used.Add(p.Need)
	}
	room := node.Allocatable()
	n.CPU, n.Memory = FillLevel{used.CPU, room.CPU}, FillLevel{used.Memory, room.Memory}
	return n
}

// capacityType reads the label of ours, or that of EKS managed node groups.
func capacityType(labels map[string]string) string {
	if c := labels[instancetypes.LabelCapacityType]; c != "" {
		return c
	}
	switch labels["eks.amazonaws.com/capacityType"] {
	case "SPOT":
		return instancetypes.Spot
	case "ON_DEMAND":
		return instancetypes.OnDemand
	}
	return ""
}

// isStopped reports whether the host's instance is stopped and waits for pods.
func isStopped(node cluster.StateNode) bool {
	return node.Standby() && node.Claim.Is(v1.ConditionStopped)
}

func phaseOf(node cluster.StateNode) string {
	switch {
	case node.MarkedForDeletion():
		return "leaving"
	case isStopped(node):
		return "stopped"
	case node.Standby() && node.Claim.ProviderID != "":
		return "warming"
	case node.Node == nil && node.Claim.ProviderID == "":
		return "launching"
	case !node.Initialized():
		return "starting"
	case !node.Node.Ready:
		return "not ready"
	case slices.ContainsFunc(node.Node.Taints, cluster.Taint.IsNomination):
		return "held"
	case slices.ContainsFunc(node.Node.Taints, func(t cluster.Taint) bool {
		return t.Key == "node.kubernetes.io/unschedulable"
	}):
		return "cordoned"
	}
	return "ready"
}

// fillWaiting fills in the pods that wait, with what the packer would do for them.
func (v *View) fillWaiting(s cluster.Snapshot, sells binpack.Offerings) {
	p := binpack.PodsFrom(s, sells)
	outlook, lost := map[string]string{}, map[string]bool{}
	for _, l := range p.AllLaunches() {
		v.Launches++
		v.AddsUSD += l.Choice.Price
		for _, pod := range l.Pods {
			outlook[pod] = fmt.Sprintf("gets a new %s of pool %s", l.Choice.OfferingKey, l.Pool)
		}
	}
	for _, e := range p.Existing {
		outlook[e.Pod] = "fits on " + e.Node
	}
	for _, u := range p.Unplaced {
		outlook[u.Pod], lost[u.Pod] = u.Message(), true
	}
	asleep := provisioning.HibernatingPods(s, sells, p.Unplaced)
	for pod := range asleep { // each on its own
		outlook[pod], lost[pod] = "waits until a NodePool wakes: "+outlook[pod], false
	}
	for _, pod := range s.Pods {
		if !pod.Provisionable() || pod.Virtual {
			continue
		}
		v.Pending = append(v.Pending, Pod{Name: pod.Key(), Waits: max(0, s.Now.Sub(pod.Created)), Lost: lost[pod.Key()],
			Asleep:  asleep[pod.Key()],
			Outlook: cmp.Or(outlook[pod.Key()], "waits for the next pass")})
	}
	slices.SortStableFunc(v.Pending, func(a, b Pod) int {
		return cmp.Or(-compareBool(a.Lost, b.Lost), cmp.Compare(b.Waits, a.Waits), cmp.Compare(a.Name, b.Name))
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
