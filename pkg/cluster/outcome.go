package cluster

// Eviction is the answer of the eviction API about one pod.
type Eviction struct {
	Refused bool   // a budget does not allow it now
	Gone    bool   // the pod is gone or was replaced
	Message string // why it was refused
}

// Event is a Kubernetes event about one object.
type Event struct {
	Kind, Namespace, Name, UID string // Pod, Node, NodeClaim, NodePool or EC2NodeClass
	Warning                    bool
	Reason, Message            string
}
