package cover

// Problem holds the pods to be covered, and the nodes that may cover them.
type Problem struct {
	Classes   []Class    // with how many pods each has
	Offerings []Offering // with the classes that each may hold
	Caps      []float64  // by group: how many pods of the group one node may hold
	Rounds    int        // of column generation at most
}

// Class is a number of pods that are alike.
type Class struct {
	Need  []float64 // by resource, in units of the caller's choice
	Count float64   // negative for a limited offering
	Group int32     // the group whose places it takes, -1 for none
	Kind  int32     // classes of one kind may be on the same offerings, as far as they fit
	Most  float64   // on one node, beside what fits; 0 for any number
	Parts bool      // it is no pod but a shape of which pods are parts
}

// Offering is a node that can be bought any number of times, or one that is there.
type Offering struct {
	Price float64   // of one, USD per hour
	Room  []float64 // by resource
	Holds []int32   // indexes of the classes that may be on it
	Limit float64   // how many of it there are, at no price; 0 for one that can be bought
}

// FleetNode is one node of a fleet with its pods.
type FleetNode struct {
	Offering int32   // index
	Class    []int32 // indexes of the classes that have pods on it
	Amount   []int   // by position of Class: pods
}
