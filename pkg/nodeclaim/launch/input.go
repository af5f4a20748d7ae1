package launch

import (
	"fmt"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// Input is everything that the choice may see.
type Input struct {
	Claim    cluster.Claim
	Class    *awsv1.EC2NodeClass
	Resolved instancetypes.Class  // of Class
	Types    []instancetypes.Type // of Resolved, with what is unavailable marked
	Cluster  Cluster

	// Addresses holds what subnets of the class have left, by id. Of one that is missing it is not known.
	Addresses map[string]SubnetAddresses

	// Batch makes the order one for so many claims that are alike, of which Claim stands for all. The zero value is for
	// Claim alone.
	Batch cluster.Batch

	// RelaxMinValues launches although fewer values are possible than a minValues of the claim wants (MIN_VALUES_POLICY
	// BestEffort).
	RelaxMinValues bool
}

// SubnetAddresses holds the addresses that a subnet has left.
type SubnetAddresses struct {
	Left  int64 // addresses for further nodes; 0 of a subnet that takes none
	Spare int64 // what is left of them when all nodes on their way are full of pods; may be negative
}

// Cluster holds what a node has to know of its cluster.
type Cluster struct {
	Name        string
	Endpoint    string // URL of the API server
	CABundle    string // base64
	DNSAddress  string // of the Service kube-system/kube-dns; empty when unknown
	ServiceCIDR string // empty when unknown
	Version     string // major.minor
	Region      string
}

// NotReadyError says that nothing can be launched for a class until somebody changes it. The claim is to be deleted, so
// that its pods are packed anew.
type NotReadyError struct {
	Class string
	Why   string
}

// Error names the class and the reason.
func (e *NotReadyError) Error() string {
	return fmt.Sprintf("EC2NodeClass %s is not ready: %s", e.Class, e.Why)
}

// ReasonReadinessUnknown is the reason of a ReadinessUnknownError on the claim's condition Launched.
const ReasonReadinessUnknown = "NodeClassReadinessUnknown"

// ReadinessUnknownError says that it is not known yet whether the class can be used. The launch is to be tried again.
type ReadinessUnknownError struct {
	Class string
}

// Error names the class.
func (e *ReadinessUnknownError) Error() string {
	return fmt.Sprintf("%s: EC2NodeClass %s has not been looked at yet", ReasonReadinessUnknown, e.Class)
}
