package instancetypes

import (
	"cmp"

	"joiner.sh/pkg/model/requirements"
)

// Class holds the parts of an EC2NodeClass that change how instance types look: its resolved status and the kubelet
// settings that take capacity away. It is a plain value, so that a snapshot can be stored and replayed.
type Class struct {
	Name    string `json:"name"`
	Ready   bool   `json:"ready"`
	Message string `json:"message,omitempty"` // why it is not ready
	Unseen  bool   `json:"unseen,omitempty"`  // its status is not of its present spec: refresh has not looked at it yet

	Hash        string `json:"hash,omitempty"` // of what static drift compares, as refresh wrote it
	HashVersion string `json:"hashVersion,omitempty"`
	// AL2, AL2023, Bottlerocket, Windows2019, Windows2022, Windows2025, Custom
	Family string  `json:"family"`
	Images []Image `json:"images,omitempty"`
	// the oldest minor version of Kubernetes 1 that the names of its images tell; 0 where none does
	KubeletMinor   int64    `json:"kubeletMinor,omitempty"`
	SecurityGroups []string `json:"securityGroups,omitempty"` // ids, sorted
	// zones with a subnet of the class, to their ids
	ZoneIDs map[string]string `json:"zoneIDs,omitempty"`
	MaxPods *int64            `json:"maxPods,omitempty"`
	// a CEL expression, in the place of MaxPods
	MaxPodsExpression string            `json:"maxPodsExpression,omitempty"`
	PodsPerCore       int64             `json:"podsPerCore,omitempty"`
	KubeReserved      map[string]string `json:"kubeReserved,omitempty"` // Kubernetes quantities, or CEL expressions
	SystemReserved    map[string]string `json:"systemReserved,omitempty"`
	EvictionHard      map[string]string `json:"evictionHard,omitempty"`
	// of the volume that backs the kubelet, 0 for 20 GiB
	EphemeralBytes int64  `json:"ephemeralBytes,omitempty"`
	Disks          []Disk `json:"disks,omitempty"`      // that every node gets
	PublicIPv4     bool   `json:"publicIPv4,omitempty"` // of every node
	RAID0          bool   `json:"raid0,omitempty"`      // instance store is the ephemeral storage
	ReservedENIs   int64  `json:"reservedENIs,omitempty"`
	// part of the memory that the VM keeps, such as 0.075
	MemoryOverhead       float64 `json:"memoryOverhead"`
	NitroOnly            bool    `json:"nitroOnly,omitempty"`            // connectionTracking is set
	Prefixes             bool    `json:"prefixes,omitempty"`             // ipPrefixCount is set
	IPv6                 bool    `json:"ipv6,omitempty"`                 // pods of the cluster have addresses of IPv6
	NestedVirtualization bool    `json:"nestedVirtualization,omitempty"` // only types that can
	// the class's own, empty when it configures none
	Interfaces []Interface `json:"interfaces,omitempty"`
	// type to the memory its registered nodes reported
	LearnedMemoryMiB map[string]int64 `json:"learnedMemoryMiB,omitempty"`
	// what nodes of its present spec turned out to have less of than estimated
	Observed         []Observation `json:"observed,omitempty"`
	Reservations     []Reservation `json:"reservations,omitempty"`     // sorted by id
	OpenReservations bool          `json:"openReservations,omitempty"` // EC2 matches open ones; there are no others
	Subnets          []Subnet      `json:"subnets,omitempty"`          // in the order of the class's status
	// nil for a class without a placement group
	Placement *Placement `json:"placement,omitempty"`
}

// ApplySettings gives the class what settings say and its object does not: which part of the memory the VM keeps, how
// many network interfaces pods do not get, whether EC2 matches open capacity reservations instead of those that the
// class selects, and whether pods have IPv6 addresses.
func (c *Class) ApplySettings(memoryOverhead float64, reservedENIs int64, openReservations, ipv6 bool) {
	c.MemoryOverhead, c.ReservedENIs, c.OpenReservations = memoryOverhead, reservedENIs, openReservations
	c.IPv6 = ipv6
	if openReservations {
		c.Reservations = nil
	}
}

// Placement is the placement group of a class: its ID or Name as the class selects it, and once it was looked up all of
// it.
type Placement struct {
	ID         string `json:"id,omitempty"`
	Name       string `json:"name,omitempty"`
	Strategy   string `json:"strategy,omitempty"`   // cluster, partition or spread; empty while it was not looked up
	Partitions int64  `json:"partitions,omitempty"` // of the strategy partition
}

// Selected returns the ID or else the name by which the class selects the group.
func (p Placement) Selected() string { return cmp.Or(p.ID, p.Name) }

// Subnet is a subnet of a class.
type Subnet struct {
	ID   string `json:"id"`
	Zone string `json:"zone"`
	Free *int64 `json:"free,omitempty"` // addresses; nil while nobody asked
}

// Interface is a network interface that a class configures.
type Interface struct {
	Card    int64 `json:"card,omitempty"`
	Device  int64 `json:"device,omitempty"`
	EFAOnly bool  `json:"efaOnly,omitempty"` // without addresses, so none for pods
}

// Image is an AMI of a class with the requirements an instance type must meet to run it. Images are sorted newest
// first.
type Image struct {
	ID           string           `json:"id"`
	Requirements requirements.Set `json:"requirements"`
}
