package launch

import (
	"fmt"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// Order is one CreateFleet request of type instant, for one instance or for as many as a batch has claims.
type Order struct {
	ClaimName string        // empty in an order for a batch
	ClaimUID  string        // empty in an order for a batch
	Batch     cluster.Batch // zero in an order for one claim
	// instancetypes.Spot, instancetypes.OnDemand or instancetypes.Reserved; one request has exactly one
	CapacityType string
	Group        string // placement group, empty for none
	// of reserved capacity: capacity-block, interruptible-capacity-reservation, or empty for a plain reservation
	Market       string
	Strategy     string     // allocation strategy of that capacity type: price-capacity-optimized or lowest-price
	Context      string     // field Context of CreateFleet, empty for none
	Templates    []Template // at least one, each with at least one override, sorted by name
	Tags         []Tag      // of the fleet and the volumes, sorted by key
	InstanceTags []Tag      // of the instance: Tags and those that name the claim, sorted by key

	Annotations map[string]string // of the claim, once an instance runs
}

// Template is a launch template with the overrides that use it. Its name is a hash of everything in it but the
// overrides, so that a template of that name, once made, never has to be changed.
type Template struct {
	Name              string               // begins with the prefix of the cluster
	ImageID           string               // AMI
	UserData          string               // base64; empty for none
	InstanceProfile   string               // name of the profile
	BlockDevices      []BlockDevice        // of the class, else of its image family; none leaves the image its own
	NetworkInterfaces []NetworkInterface   // security groups ride on these and nowhere else
	Metadata          Metadata             // metadata options of the instance
	Monitoring        bool                 // detailed monitoring
	NestedVirtual     string               // CpuOptions.NestedVirtualization: enabled, disabled or empty for unset
	Enclave           bool                 // EnclaveOptions.Enabled
	Tenancy           string               // default or dedicated
	Group             string               `json:",omitempty"` // placement group, by its id
	Partition         int32                `json:",omitempty"` // of the group; 0 lets EC2 choose
	Reservation       ReservationSelection // which capacity reservations it may use
	Tags              []Tag                // of the template itself and of its network interfaces, sorted by key
	SpotTags          []Tag                // of the spot request; empty unless it launches spot
	Overrides         []Override           `json:"-"` // sorted by price, type, zone
}

// Override is one offering that the request may be served from.
type Override struct {
	instancetypes.OfferingKey
	SubnetID string  // in the zone of the offering
	ImageID  string  // AMI for the type
	Price    float64 // USD per hour; also the priority
	Pods     int64   // that a node of the type takes, and so addresses of the subnet
}

// BlockDevice is a volume of the instance. Zero values are left out of the request.
type BlockDevice struct {
	Device                   string // such as /dev/xvda
	SizeGiB                  int32  // 0 for the size of the snapshot
	VolumeType               string // such as gp3
	IOPS                     int32  // I/O operations per second
	Throughput               int32  // MiB/s
	VolumeInitializationRate int32  // MiB/s
	Encrypted                *bool  // nil leaves it to the account
	DeleteOnTermination      *bool  // nil leaves it to EC2
	KMSKeyID                 string // key id or ARN
	SnapshotID               string // that it is made of
}

// NetworkInterface is a network interface made at launch.
type NetworkInterface struct {
	CardIndex          int32               // network card
	DeviceIndex        int32               // on that card; 0 on card 0 is the primary one
	Type               string              // interface, efa or efa-only; empty leaves it unset
	SecurityGroupIDs   []string            // of the class
	AssociatePublicIP  *bool               // nil lets the subnet decide
	IPv4PrefixCount    int32               // 0 leaves it unset
	IPv6AddressCount   int32               // 0 leaves it unset
	PrimaryIPv6        bool                // its first IPv6 address does not change
	ConnectionTracking *ConnectionTracking // nil leaves it to EC2
}

// ConnectionTracking holds idle time-outs of tracked connections, in seconds; 0 leaves one unset.
type ConnectionTracking struct {
	TCPEstablishedSec int32 // of TCP connections
	UDPStreamSec      int32 // of UDP flows with several packets each way
	UDPSec            int32 // of UDP flows with one packet or one way
}

// Metadata says how the instance reaches its metadata service. Tags in metadata are always disabled, because tag keys
// with a slash are not allowed there.
type Metadata struct {
	HTTPEndpoint string // enabled or disabled
	HTTPProtocol string // HttpProtocolIpv6: enabled, disabled, or empty where the region does not know it
	HopLimit     int32  // of responses; pods without the network of the host need 2
	HTTPTokens   string // required or optional
}

// ReservationSelection says which capacity reservations an instance may be put into.
type ReservationSelection struct {
	Preference string // none or capacity-reservations-only
	ID         string // the reservation, with capacity-reservations-only
	Market     string // capacity-block, interruptible-capacity-reservation, or empty
}

// Tag is a tag of an EC2 resource.
type Tag struct {
	Key   string // at most 128 characters
	Value string // may be empty
}

// Offerings lists all offerings that the order asks for, in the order of the templates.
func (o Order) Offerings() []instancetypes.OfferingKey {
	var out []instancetypes.OfferingKey
	for _, t := range o.Templates {
		for _, v := range t.Overrides {
			out = append(out, v.OfferingKey)
		}
	}
	return out
}

// Reservation is the capacity reservation that an instance of the type in the zone is launched into by this order,
// empty for none.
func (o Order) Reservation(typ, zone string) string {
	for _, t := range o.Templates {
		for _, v := range t.Overrides {
			if v.Type == typ && v.Zone == zone {
				return t.Reservation.ID
			}
		}
	}
	return ""
}

// Count returns the number of instances that are asked for.
func (o Order) Count() int { return max(1, o.Batch.Size) }

// String says what is asked for, for whom and how many offerings would do.
func (o Order) String() string {
	if o.Batch.ID != "" {
		return fmt.Sprintf("order %d %s for batch %s from %d offerings in %d templates",
			o.Count(), o.CapacityType, o.Batch.ID, len(o.Offerings()), len(o.Templates))
	}
	return fmt.Sprintf("order %s for claim %s from %d offerings in %d templates",
		o.CapacityType, o.ClaimName, len(o.Offerings()), len(o.Templates))
}

// ClientToken is the ClientToken of the attempt-th CreateFleet request for a claim. EC2 answers a repeated token with
// the first answer, so an attempt that may have been carried out must be repeated under its own number and unchanged.
// The result has at most 64 ASCII characters for a UID of up to 53.
func ClientToken(uid string, attempt int) string { return fmt.Sprintf("%s-%d", uid, attempt) }
