package doctor

import (
	"cmp"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/findings"
	"joiner.sh/pkg/settings"
)

// Facts holds what was found out. A part with a text in Unknown was not looked at, for that reason.
type Facts struct {
	Now       time.Time
	Cluster   string // name, empty if nobody gave one: then AWS was not asked
	API       API
	CRDs      []Object
	RBAC      []Object
	Classes   []Class
	Pools     []NodePool
	Unread    []Misannotation
	Rollouts  []Rollout
	Leader    Leader
	Loose     []MissingRequests
	Devices   Devices
	EKS       EKS
	Entries   Entries
	Functions Functions
	Lambda    Lambda
	Quotas    Quotas
	SpotRole  Role // the service-linked one without which EC2 sells no spot capacity
	NodeRole  Role // of the name that the stack gives its own
	Nodes     int  // of Joiner's
	Pods      int  // that have not ended

	Encryption Encryption
	Secret     Secret // of remote write
}

// API is the API server as seen from where the doctor is.
type API struct {
	Unknown string // why it could not be asked
	Host    string
	Version string // such as v1.36.3
	Denied  []string
}

// Object is a CRD, or an object of RBAC, that Joiner brings.
type Object struct {
	Name    string // kind and name, as kubectl takes it
	Found   bool
	Differs string // in what way it is not what this version of Joiner brings; empty for not at all
}

// NodePool is what doctor looks at of a NodePool.
type NodePool struct {
	Name       string
	Problem    string   // why it is not ready
	Disruption string   // what of it keeps its nodes from being disrupted by choice
	Unknown    []string // annotations that look like Joiner's and are none
	Bounded    bool     // it has limits, or launches a fixed number of nodes
}

// Misannotation tells of an annotation of a pod or node that Joiner does not know.
type Misannotation struct {
	Object  string // kind and name, as kubectl takes it; a namespace before, if it has one
	Message string
}

// Class is an EC2NodeClass with what AWS says about what it chose.
type Class struct {
	Name     string
	Role     string   // of its nodes, empty where it names an instance profile
	Empty    []string // selector terms that select nothing, such as subnetSelectorTerms[0]
	Misread  string   // what its nodes make of user data that was written for others
	Problems []Problem
	Unknown  string // why AWS was not asked
	Subnets  []Subnet
	Groups   []SecurityGroup
}

// Problem is a condition that is not true.
type Problem struct{ Condition, Message string }

// Subnet is a subnet that a class chose.
type Subnet struct {
	ID, Zone string
	FreeIPs  int
}

// SecurityGroup is a security group that a class chose.
type SecurityGroup struct {
	ID    string
	Owned bool // it carries the tag kubernetes.io/cluster/NAME
}

// Leader tells who holds Karpenter's leader lease.
type Leader struct {
	Unknown           string
	Namespace, Holder string // empty for nobody
}

// MissingRequests are pods of one controller that ask for no cpu or no memory.
type MissingRequests struct {
	Namespace, Owner string // kind/name
	Pods             int
	Lacks            string // cpu, memory, or both
}

// Devices are the DRA drivers of the cluster, and the DeviceClasses that serve extended resources.
type Devices struct {
	Drivers []cluster.DeviceDriver
	Classes []cluster.DeviceClass
	Late    []LateNode
}

// LateNode is a node that has waited for devices longer than drivers take to publish them.
type LateNode struct {
	Name    string
	Drivers []string // that it was launched for
	Minutes int      // since it registered
	Why     string   // its NodeClaim is not initialized; empty if nobody said
}

// EKS is the cluster as EKS describes it.
type EKS struct {
	Unknown        string
	Found          bool
	Status         string
	Mode           string   // of authentication
	Public         bool     // its endpoint
	CIDRs          []string // from which that may be reached
	Subnets        []string // of the cluster
	SecurityGroups []string // the cluster's own
}

// Entries are the access entries of the cluster.
type Entries struct {
	Unknown string
	List    []Entry
}

// Entry is one access entry.
type Entry struct {
	Principal string // ARN
	Type      string
	Groups    []string
}

// Functions are Joiner's Lambda functions.
type Functions struct {
	Unknown string
	List    []Function
}

// Function is one of them.
type Function struct {
	Name     string
	Found    bool
	State    string // Active, Pending, Failed
	Reason   string // for another state
	InVPC    bool
	Mode     string // setting of that name
	Memory   int    // MiB
	MaxNodes int    // setting of that name; 0 for no bound

	Version string    // of Joiner; empty for a release that does not say
	Changed time.Time // when its code or its settings came; zero: not known

	LeaseNamespaces []string // where it looks for Karpenter's leader lease
	// where it sends metrics, as it is deployed; without a URL nowhere
	RemoteWrite settings.RemoteWrite
}

// Lambda holds the number of invocations that the account may run at once.
type Lambda struct {
	Unknown           string
	Limit, Unreserved int
	ForNotices        int // reserved for each of the functions whose events leave two minutes, the least of them
	Wanted            int // by a stack of which nothing is there yet, all in all
}

// Quotas holds the quotas of EC2 that bound how much runs.
type Quotas struct {
	Unknown string
	List    []Quota
}

// Quota is one of them, in vCPU.
type Quota struct {
	Code, Name  string
	Limit, Used float64
}

// Role tells whether there is a role of the name.
type Role struct {
	Unknown string
	Name    string
	Found   bool
}

// Encryption tells how the account encrypts new volumes of which nobody says how.
type Encryption struct {
	Unknown string
	Always  bool
	Key     string // by which; that of AWS is alias/aws/ebs
}

// RunChecks makes every check, in the order in which a person would mend things.
func RunChecks(f Facts) findings.List {
	var e examination
	e.f = f
	for _, check := range []func(){
		e.checkAPI, e.checkEKS, e.checkFunctions, e.checkRemoteWrite, e.checkNodeRole, e.checkAccessEntries, e.checkCRDs, e.checkRBAC, e.checkLeader,
		e.checkClasses, e.checkPools, e.checkRollouts, e.spotRole, e.checkEncryption, e.checkLambda, e.checkMemory, func() { checkCeiling(&e) }, e.checkCost, e.checkQuotas, e.devices,
		e.checkMissingRequests, e.checkAnnotations,
	} {
		check()
	}
	return e.List
}

// examination gathers findings.
type examination struct {
	findings.List
	f Facts
}

// clusterName is the cluster's, or a word to put it in place of.
func (e *examination) clusterName() string { return cmp.Or(e.f.Cluster, "CLUSTER") }
