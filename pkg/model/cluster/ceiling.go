package cluster

// Ceiling bounds what Joiner runs in the whole cluster, whatever it is launched for. A bound of 0 is none.
type Ceiling struct {
	Nodes          int `json:"nodes,omitempty"`          // NodeClaims that exist
	NodesPerMinute int `json:"nodesPerMinute,omitempty"` // NodeClaims that get an instance within a minute
	// what EC2 charges for all instances, in millionths of a USD per hour
	MillionthsUSD int64 `json:"millionthsUSD,omitempty"`
}
