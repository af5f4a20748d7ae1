package packing

import (
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/podtopology"
)

// PodBatch is the unit that is packed: pods of one view that may go to the same places.
type PodBatch struct {
	ID    int                  // place among the batches of a round
	View  *podclass.RelaxedPod // the class as far as it is relaxed
	Pins  []podclass.DomainPin // domains that the pods are tied to, in the order of their keys; nil for none
	Admit *podclass.Admission  // of View, tied to Pins
	Left  int                  // pods without a place
	whole bool                 // all must stand on one node
	Value float64              // what one pod is worth, USD per hour
	Least float64              // the lowest price per pod on any node that admits it, USD per hour

	refused []*capacity.OfferingPool // whose MinValues the types that hold one of its pods do not meet
}

// domainDivision gives waiting pods the domains in which they are to be packed.
type domainDivision struct {
	a   *Solution
	pk  *packing
	top *podtopology.Counts
	// what is there, and what was given so far
	tally podtopology.DomainCounts
	given map[classDomain]int
	// pods that a spread left without a domain so far
	held []*podSplit
}

// domainChoice holds what the domains of a topology key have for a batch, and what was given to them so far.
type domainChoice struct {
	key   string
	rules []podclass.TopologyRule
	open  []float64 // the price in each domain, NoPrice where the pods cannot go
	// the prices by which domains compare, see priceNodes
	prices []float64
	home   []int // the weights whose pools sell nodes there, 0 for the heaviest
	room   []int // how many pods the hosts of each domain could take
	most   []int // how many pods can go there, no limit where new nodes are for sale in any number
	slots  []int // how many more the capacity reservations of each domain could take
	left   int   // how many pods have no domain yet
	// domains that others need more, see scarceDomains; nil for none
	scarce []bool
}

// podSplit divides the pods of a view over the domains of all keys that concern it.
type podSplit struct {
	dd   *domainDivision
	view *podclass.RelaxedPod
	keys []string
	all  *splitPart
	left int    // pods without a domain
	why  string // the next of them has none
	// domains in which alone those of another domain of the key before can be are left to these
	leaveScarce bool
}

// splitPart is the pods that are tied to the same domains of the first keys.
type splitPart struct {
	pins    []podclass.DomainPin
	above   *splitPart    // that is divided into this and others
	pods    int           // of all keys
	choice  *domainChoice // of the next key, once asked
	away    float64       // the price where no node has its label, NoPrice where the pods cannot be there
	parts   []*splitPart  // by domain of it
	outside *splitPart
}
