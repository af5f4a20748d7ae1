package workload

// Placement says where the pods of a workload went. Times are seconds, prices USD per hour.
type Placement struct {
	Tool            string      `json:"tool"`
	Workload        string      `json:"workload"`
	Pods            int         `json:"pods"` // that were pending
	PlanSeconds     float64     `json:"planSeconds"`
	PlanUserSeconds float64     `json:"planUserSeconds"`
	MaxRSSMiB       float64     `json:"maxRSSMiB"`
	Allocations     uint64      `json:"-"` // objects on the heap
	NodeClaims      []NodeClaim `json:"nodeClaims"`
	OnExisting      []OnNode    `json:"onExisting"`
	Unplaced        []Unplaced  `json:"unplaced"`
	HourlyUSD       float64     `json:"hourlyUSD"`
	PreferencesUSD  float64     `json:"preferencesUSD,omitempty"` // of it, for what pods prefer and do not require
	LowerBoundUSD   float64     `json:"lowerBoundUSD"`            // 0 when none was proven
	// HourlyUSD / LowerBoundUSD - 1; 0 when nothing is launched, null without a bound
	Gap *float64 `json:"gap"`
}

// NodeClaim is a new node.
type NodeClaim struct {
	NodePool     string         `json:"nodePool"`
	InstanceType string         `json:"instanceType"`
	Zone         string         `json:"zone"`
	CapacityType string         `json:"capacityType"`
	HourlyUSD    float64        `json:"hourlyUSD"`
	NodeUSD      float64        `json:"nodeUSD,omitempty"`     // of it, beside the instance
	DeclaredUSD  float64        `json:"declaredUSD,omitempty"` // of NodeUSD, what the owner declares; the rest is AWS's
	TypeOptions  []string       `json:"typeOptions"`           // types left for the launch to choose from
	Pods         map[string]int `json:"pods"`                  // group to number
}

// OnNode counts the pods that went onto an existing node.
type OnNode struct {
	Node string         `json:"node"`
	Pods map[string]int `json:"pods"` // group to number
}

// Unplaced tells of pods that are unschedulable, and why.
type Unplaced struct {
	Group   string   `json:"group"`
	Count   int      `json:"count"`
	Reasons []string `json:"reasons"`
	// changes that would give a pod of it a place, the cheapest first
	WouldHelp []string `json:"wouldHelp,omitempty"`

	Pod string `json:"-"` // one of them, namespace/name; empty where no plan speaks of any
}

// CountUnplaced counts the pods that have no place.
func (p Placement) CountUnplaced() int {
	n := 0
	for _, u := range p.Unplaced {
		n += u.Count
	}
	return n
}
