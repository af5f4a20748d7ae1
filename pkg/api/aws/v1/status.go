package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EC2NodeClassStatus holds the resources that the selectors match, and conditions.
type EC2NodeClassStatus struct {
	// Subnets sorted by free addresses, most first, then ID.
	// +optional
	Subnets []Subnet `json:"subnets,omitempty"`
	// SecurityGroups sorted by ID.
	// +optional
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`
	// CapacityReservations sorted by ID.
	// +optional
	CapacityReservations []CapacityReservation `json:"capacityReservations,omitempty"`
	// AMIs sorted newest first, then ID; an instance type boots the first whose requirements it meets.
	// +optional
	AMIs []AMI `json:"amis,omitempty"`
	// InstanceProfile is the name of the profile instances get.
	// +optional
	InstanceProfile string `json:"instanceProfile,omitempty"`
	// Conditions: one for each selector, ValidationSucceeded and Ready.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Subnet is a subnet that was found.
type Subnet struct {
	// ID of the subnet.
	// +required
	ID string `json:"id"`
	// Zone is the availability zone's name in this account.
	// +required
	Zone string `json:"zone"`
	// ZoneID is the availability zone's ID, the same in every account.
	// +optional
	ZoneID string `json:"zoneID,omitempty"`
}

// SecurityGroup is a security group that was found.
type SecurityGroup struct {
	// ID of the group.
	// +required
	ID string `json:"id"`
	// Name of the group.
	// +optional
	Name string `json:"name,omitempty"`
}

// AMI is a machine image that was found, and which instance types boot it.
type AMI struct {
	// ID of the image.
	// +required
	ID string `json:"id"`
	// Name of the image.
	// +optional
	Name string `json:"name,omitempty"`
	// Deprecated images are used only when nothing else matches.
	// +optional
	Deprecated bool `json:"deprecated,omitempty"`
	// Requirements an instance type must meet to boot it.
	// +required
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
}

// CapacityReservationType tells capacity blocks from other reservations.
//
// +kubebuilder:validation:Enum:={default,capacity-block}
type CapacityReservationType string

// Values of CapacityReservationType.
const (
	CapacityReservationTypeDefault       CapacityReservationType = "default"
	CapacityReservationTypeCapacityBlock CapacityReservationType = "capacity-block"
)

// CapacityReservationState says whether a reservation still takes launches.
//
// +kubebuilder:validation:Enum:={active,expiring}
type CapacityReservationState string

// Values of CapacityReservationState.
const (
	CapacityReservationStateActive   CapacityReservationState = "active"
	CapacityReservationStateExpiring CapacityReservationState = "expiring"
)

// CapacityReservation is a capacity reservation that was found.
type CapacityReservation struct {
	// AvailabilityZone is the zone's name in this account.
	// +required
	AvailabilityZone string `json:"availabilityZone"`
	// EndTime is the end of the reservation; not given, it has none.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// ID of the reservation.
	// +kubebuilder:validation:Pattern:="^cr-[0-9a-z]+$"
	// +required
	ID string `json:"id"`
	// InstanceMatchCriteria is open or targeted.
	// +kubebuilder:validation:Enum:={open,targeted}
	// +required
	InstanceMatchCriteria string `json:"instanceMatchCriteria"`
	// InstanceType the reservation is for.
	// +required
	InstanceType string `json:"instanceType"`
	// Interruptible reservations may be taken back with a notice.
	// +optional
	Interruptible bool `json:"interruptible"`
	// OwnerID is the account that owns the reservation.
	// +kubebuilder:validation:Pattern:="^[0-9]{12}$"
	// +required
	OwnerID string `json:"ownerID"`
	// ReservationType is default or capacity-block.
	// +kubebuilder:default=default
	// +optional
	ReservationType CapacityReservationType `json:"reservationType"`
	// State is active, or expiring shortly before a capacity block ends.
	// +kubebuilder:default=active
	// +optional
	State CapacityReservationState `json:"state"`
}
