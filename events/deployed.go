package events

// Deployed is CloudFormation's event about a stack that has been created or changed. The rule of our stack asks for its
// own stack only; refresh takes it as a tick, so that the catalog exists soon after the first deployment, and asks EC2
// anew what the deployment allows.
type Deployed = Event[DeployedDetail]

// DeployedDetail names the stack and what became of it.
type DeployedDetail struct {
	StackID       string        `json:"stack-id"`
	StatusDetails StatusDetails `json:"status-details"`
}

// StatusDetails is the status of a stack, such as CREATE_COMPLETE.
type StatusDetails struct {
	Status string `json:"status"`
	Reason string `json:"status-reason"`
}

// DecodeDeployed reads the event.
func DecodeDeployed(data []byte) (Deployed, error) {
	return decodeEvent[DeployedDetail](data, "aws.cloudformation", "CloudFormation Stack Status Change")
}
