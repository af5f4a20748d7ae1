package catalog

import (
	"fmt"
	"time"

	"joiner/pkg/require"
	"joiner/pkg/resource"
)

// Capacity types, the values of the label karpenter.sh/capacity-type.
const (
	Spot     = "spot"
	OnDemand = "on-demand"
	Reserved = "reserved"
)

// Offer names one thing that EC2 sells: a type in a zone under a capacity type.
type Offer struct {
	CapacityType string `json:"capacityType"`
	Type         string `json:"type"`
	Zone         string `json:"zone"`
}

// String prints the offer as capacity type, type and zone.
func (o Offer) String() string { return fmt.Sprintf("%s %s in %s", o.CapacityType, o.Type, o.Zone) }

// Offering is an offer with its price for one EC2NodeClass.
type Offering struct {
	Offer
	ZoneID    string  `json:"zoneID,omitempty"`
	Price     float64 `json:"price"` // USD per hour
	Available bool    `json:"available"`
	Why       string  `json:"why,omitempty"` // why it is not available, for people
}

// Type is an instance type as one EC2NodeClass sees it.
type Type struct {
	Name         string
	Requirements require.Set // the labels a node of this type can have, many-valued for zone and capacity type
	Capacity     resource.List
	Allocatable  resource.List
	Offerings    []Offering // sorted by price, then zone, then capacity type
	MaxPods      int64
	ImageID      string // of the class's AMIs the first that fits; empty when none does
}

// Mark says that an offer was refused by EC2, so that nobody asks for it again before Until.
// An empty Type or Zone stands for all of them.
type Mark struct {
	Offer
	Until time.Time `json:"until"`
	Why   string    `json:"why"` // the error code
	Times int       `json:"times"`
}

// Covers reports whether the mark applies to the offer at the time now.
func (m Mark) Covers(o Offer, now time.Time) bool {
	return now.Before(m.Until) && m.CapacityType == o.CapacityType &&
		(m.Type == "" || m.Type == o.Type) && (m.Zone == "" || m.Zone == o.Zone)
}

// NoCapacityError says that nothing can be bought: EC2 refused all offers that a launch asked for, or nothing was left to ask for.
type NoCapacityError struct {
	Marks []Mark // one for each offer that EC2 refused, without Until
	Why   string // why nothing was asked for, in words
}

// Error lists the first refused offers and their codes.
func (e *NoCapacityError) Error() string {
	s := "no capacity"
	if e.Why != "" {
		s += ": " + e.Why
	}
	for i, m := range e.Marks {
		if i == 3 {
			return s + fmt.Sprintf(", and %d more offers", len(e.Marks)-i)
		}
		s += fmt.Sprintf(", %s: %s", m.Offer, m.Why)
	}
	return s
}
