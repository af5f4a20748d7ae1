package instancetypes

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// Capacity types, the values of the label karpenter.sh/capacity-type.
const (
	Spot     = "spot"
	OnDemand = "on-demand"
	Reserved = "reserved"
)

// OfferingKey names one thing that EC2 sells: a type in a zone under a capacity type.
type OfferingKey struct {
	CapacityType string `json:"capacityType"`
	Type         string `json:"type"`
	Zone         string `json:"zone"`
}

// OfferingKeyOf returns what an instance was bought as, by the labels of its NodeClaim or Node, as far as they say.
func OfferingKeyOf(labels map[string]string) OfferingKey {
	return OfferingKey{CapacityType: labels[LabelCapacityType], Type: labels[LabelType], Zone: labels[LabelZone]}
}

// String prints the offering as capacity type, type and zone.
func (o OfferingKey) String() string {
	return fmt.Sprintf("%s %s in %s", o.CapacityType, o.Type, o.Zone)
}

// Offering is an offering with its price for one EC2NodeClass.
type Offering struct {
	OfferingKey
	ZoneID  string  `json:"zoneID,omitempty"`
	Price   float64 `json:"price"`             // USD per hour, NodeUSD included
	NodeUSD float64 `json:"nodeUSD,omitempty"` // what of it the node costs beside its instance; see NodeCost
	// what of NodeUSD the owner declares
	DeclaredUSD float64 `json:"declaredUSD,omitempty"`
	Available   bool    `json:"available"`
	Why         string  `json:"why,omitempty"` // why it is not available, for people

	Reservation *Reservation `json:"reservation,omitempty"` // of capacity type reserved: where it comes from
	// commitments that cover it, the first with room for it does; see Catalog.Paid
	Paid []CommitmentDraw `json:"paid,omitempty"`
}

// Reservation is a capacity reservation of an EC2NodeClass.
type Reservation struct {
	ID            string `json:"id"`
	Type          string `json:"type"` // instance type it is for
	Zone          string `json:"zone"`
	Kind          string `json:"kind"` // default or capacity-block
	Interruptible bool   `json:"interruptible,omitempty"`
	Remaining     int64  `json:"remaining"` // instances it still has room for; 0 also while that is not known

	Expiring bool      `json:"expiring,omitempty"` // a capacity block that is about to end
	Ends     time.Time `json:"ends,omitzero"`      // zero for one that goes on until it is cancelled
}

// CapacityBlock is the kind of a reservation that is bought for a time.
const CapacityBlock = "capacity-block"

// blockNotice is the time before its end from which a capacity block takes no more launches and its nodes go: ten
// minutes before EC2 begins to end its instances.
const blockNotice = 40 * time.Minute

// Ending reports whether the reservation is about to end, or has ended.
func (r Reservation) Ending(now time.Time) bool {
	if r.Expiring || r.Ends.IsZero() {
		return r.Expiring
	}
	if r.Kind == CapacityBlock {
		return !now.Before(r.Ends.Add(-blockNotice))
	}
	return !now.Before(r.Ends)
}

// Type is an instance type as one EC2NodeClass sees it.
type Type struct {
	Name         string
	Requirements requirements.Set // the labels a node of this type can have, many-valued for zone and capacity type
	Capacity     resources.List
	Allocatable  resources.List
	Offerings    []Offering // sorted by price, then zone, then capacity type
	MaxPods      int64
	Reserved     KubeletReserved
	ImageID      string // of the class's AMIs the first that fits; empty when none does

	EBSVolumes int64           // that the CSI driver attaches to a new node; 0 while that is not known
	EFADevices []NetworkDevice // of an instance for pods that ask for EFA, unless the class has interfaces of its own
	PartOfGPU  bool            // what it counts as a GPU is a part of one

	PriceOverlaid    bool // a NodeOverlay changed the price of an offering
	CapacityOverlaid bool // a NodeOverlay changed what the type holds
}

// SortOfferings puts the offerings in the order of Type: by price, zone, capacity type and reservation. Those that
// cannot be had because nobody knows their price are last.
func SortOfferings(list []Offering) {
	slices.SortFunc(list, func(a, b Offering) int {
		return cmp.Or(cmp.Compare(a.offeringRank(), b.offeringRank()), cmp.Compare(a.Zone, b.Zone),
			cmp.Compare(a.CapacityType, b.CapacityType),
			cmp.Compare(a.reservationID(), b.reservationID()), cmp.Compare(len(b.Paid), len(a.Paid)))
	})
}

func (o Offering) offeringRank() float64 {
	if o.Price <= 0 && !o.Available {
		return math.MaxFloat64
	}
	return o.Price
}

func (o Offering) reservationID() string {
	if o.Reservation == nil {
		return ""
	}
	return o.Reservation.ID
}

// AtPrice returns the offering with its instance at another price. One that was not to be had only because its price is
// unknown now is.
func (o Offering) AtPrice(usd float64) Offering {
	if !o.PriceKnown() {
		o.Available, o.Why = true, ""
	}
	o.Price = usd + o.NodeUSD
	return o
}

// PriceKnown reports whether the price is known. Where it is not, that is the only thing in the way of the offering.
func (o Offering) PriceKnown() bool {
	return o.Why != spotPriceUnknown && o.Why != onDemandPriceUnknown
}

// Label returns the value of a label in which the offerings of one type differ: zone, zone id, capacity type and those
// of reservations. own is false for every other label; of those a value of "" says that nodes of the offering do not
// carry it.
func (o Offering) Label(key string) (value string, own bool) {
	switch key {
	case LabelZone:
		return o.Zone, true
	case LabelZoneID:
		return o.ZoneID, true
	case LabelCapacityType:
		return o.CapacityType, true
	case LabelReservationID, LabelReservation, LabelInterruptible:
		if o.Reservation == nil {
			return "", true
		}
		switch key {
		case LabelReservationID:
			return o.Reservation.ID, true
		case LabelReservation:
			return o.Reservation.Kind, true
		}
		return strconv.FormatBool(o.Reservation.Interruptible), true
	case LabelTenancy:
		return TenancyDefault, len(o.Paid) > 0 // no commitment that is read covers dedicated ones
	}
	return "", false
}

// Meets reports whether a node of the offering meets the set as far as the offerings of one type differ (see Label).
func (o Offering) Meets(s requirements.Set) bool {
	for _, r := range s.All() {
		v, own := o.Label(r.Key)
		switch {
		case !own:
		case v == "" && !r.AllowsAbsent():
			return false
		case v != "" && !r.Has(v):
			return false
		}
	}
	return true
}

// UnavailableOffering is an entry that says that EC2 refused an offering: nobody asks for it again before Until. An
// empty Type or Zone stands for all of them.
type UnavailableOffering struct {
	OfferingKey
	// Scope limits the entry to launches into one capacity reservation or placement group, by its id, or of one
	// EC2NodeClass, by its ClassScope; empty for all. An entry of no offering and the scope of a subnet is about that
	// subnet, whatever is launched there; one of no offering and a ClassScope about that EC2NodeClass, two if it has a
	// Cause and none; one of a type alone and a ClassScope about that type of the class.
	Scope string    `json:"scope,omitempty"`
	Until time.Time `json:"until"`
	Why   string    `json:"why"` // the error code
	Times int       `json:"times"`
	// of an entry about a type of a class: the resource that its nodes never have, empty for a type that is left out
	Resource string `json:"resource,omitempty"`
	// of such an entry, and of one about a class whose nodes never become usable: it holds as long as Class.CauseOf
	// says the same
	Cause string `json:"cause,omitempty"`
}

// classScope begins the scope of an entry about an EC2NodeClass.
const classScope = "ec2nodeclass/"

// ClassScope is the scope of an entry about an EC2NodeClass.
func ClassScope(class string) string { return classScope + class }

// Class is the EC2NodeClass that the entry is about as a whole, empty for another entry.
func (u UnavailableOffering) Class() string {
	name, of := strings.CutPrefix(u.Scope, classScope)
	if !of || u.OfferingKey != (OfferingKey{}) {
		return ""
	}
	return name
}

// RefusedForClass reports whether EC2 refuses the offering for one EC2NodeClass, for another reason than lack of
// capacity.
func (u UnavailableOffering) RefusedForClass() bool {
	return strings.HasPrefix(u.Scope, classScope) && u.CapacityType != ""
}

// ClassType is the EC2NodeClass and the instance type of it that the entry is about, both empty for another entry.
func (u UnavailableOffering) ClassType() (class, instanceType string) {
	name, of := strings.CutPrefix(u.Scope, classScope)
	if !of || u.Type == "" || u.OfferingKey != (OfferingKey{Type: u.Type}) {
		return "", ""
	}
	return name, u.Type
}

// LeavesOut reports whether the entry leaves a type of a class, or a class, out because its nodes were bought in vain.
func (u UnavailableOffering) LeavesOut() bool {
	class, _ := u.ClassType()
	return class != "" && u.Resource == "" || u.Class() != "" && u.Cause != ""
}

// Covers reports whether the entry applies to the offering at the time now.
func (u UnavailableOffering) Covers(o OfferingKey, now time.Time) bool {
	return now.Before(u.Until) && u.Scope == "" && u.CapacityType == o.CapacityType &&
		(u.Type == "" || u.Type == o.Type) && (u.Zone == "" || u.Zone == o.Zone)
}

// String names what the entry is about.
func (u UnavailableOffering) String() string {
	switch {
	case u.Scope == "":
		return u.OfferingKey.String()
	case u.OfferingKey == OfferingKey{}:
		return u.Scope
	case u.OfferingKey == OfferingKey{Type: u.Type}:
		return u.Type + " in " + u.Scope
	}
	return u.OfferingKey.String() + " in " + u.Scope
}

// NoCapacityError says that nothing can be bought: EC2 refused all offerings that a launch asked for, or nothing was
// left to ask for.
type NoCapacityError struct {
	Unavailable []UnavailableOffering // one for each offering that EC2 refused, without Until
	Why         string                // why nothing was asked for, in words
}

// Error lists the first refused offerings and their codes.
func (e *NoCapacityError) Error() string {
	s := "no capacity"
	if e.Why != "" {
		s += ": " + e.Why
	}
	for i, u := range e.Unavailable {
		if i == 3 {
			return s + fmt.Sprintf(", and %d more offerings", len(e.Unavailable)-i)
		}
		s += fmt.Sprintf(", %s: %s", u, u.Why)
	}
	return s
}
