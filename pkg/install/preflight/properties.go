package preflight

import (
	"strconv"
	"strings"

	"joiner.sh/pkg/settings"
)

// Properties of the custom resource that asks for the preflight. All are texts, lists with commas.
const (
	propertyCluster     = "ClusterName"
	propertyRole        = "RoleArn"
	propertyMode        = "Mode"
	propertyNodeRole    = "NodeRole"
	propertyWindows     = "WindowsNodeRole"
	propertyMade        = "MadeNodeRoles"
	propertyPolicies    = "NodePolicies"
	propertyVPC         = "VpcId"
	propertySubnets     = "SubnetIds"
	propertyEndpoints   = "Endpoints"
	propertyReserved    = "Reserved"
	propertyNotices     = "ReservedForNotices"
	propertyReservation = "ReservedForReservations"
	propertyRegion      = "GivenRegion"
	propertyPush        = "Push"
	propertyZonalShift  = "ZonalShift"
	propertyMemory      = "FunctionMemory"
	propertyMemoryLike  = "MemoryLike"
	propertyDeployment  = "Deployment"
	modeObserve         = "observe"
	memoryAuto          = "auto"
)

// Properties are the plan as the stack hands it to its preflight. What it does not need of a plan is left out.
func (p StackPlan) Properties() map[string]any {
	mode := "act"
	if p.Observe {
		mode = modeObserve
	}
	out := map[string]any{propertyCluster: p.Cluster, propertyMode: mode, propertyNodeRole: p.NodeRole,
		propertyMade: strings.Join(p.MadeNodeRoles, ","), propertyPolicies: strings.Join(p.NodePolicies, ","),
		propertyVPC: p.VPC, propertySubnets: strings.Join(p.Subnets, ","), propertyEndpoints: strings.Join(p.Endpoints, ","),
		propertyReserved: strconv.Itoa(p.Reserved), propertyNotices: strconv.Itoa(p.ForNotices),
		propertyReservation: strconv.Itoa(p.ForReservations), propertyMemory: strconv.Itoa(p.FunctionMemory),
		propertyMemoryLike: p.MemoryLike, propertyPush: strconv.FormatBool(p.Push)}
	if p.FunctionMemory == settings.Auto {
		out[propertyMemory] = memoryAuto
	}
	if p.ZonalShift {
		out[propertyZonalShift] = "true"
	}
	if p.GivenRegion != "" {
		out[propertyRegion] = p.GivenRegion
	}
	if p.WindowsNodeRole != "" {
		out[propertyWindows] = p.WindowsNodeRole
	}
	if p.Deployment != "" {
		out[propertyDeployment] = p.Deployment
	}
	return out
}

// ReadPlan reads the plan from the properties of a request or of a template. What is no text, such as a reference that
// nobody resolved, is empty. Whole is false for properties of a version of the stack that did not say everything.
func ReadPlan(properties map[string]any, region string) (p StackPlan, whole bool) {
	text := func(name string) string {
		value, _ := properties[name].(string)
		return value
	}
	list := func(name string) []string {
		if text(name) == "" {
			return nil
		}
		return strings.Split(text(name), ",")
	}
	number := func(name string) int {
		n, _ := strconv.Atoi(text(name))
		return n
	}
	_, whole = properties[propertyMade]
	memory := number(propertyMemory)
	if text(propertyMemory) == memoryAuto {
		memory = settings.Auto
	}
	return StackPlan{Cluster: text(propertyCluster), Region: region, Role: text(propertyRole),
		Observe: text(propertyMode) == modeObserve, NodeRole: text(propertyNodeRole),
		WindowsNodeRole: text(propertyWindows), MadeNodeRoles: list(propertyMade),
		NodePolicies: list(propertyPolicies), VPC: text(propertyVPC), Subnets: list(propertySubnets),
		Endpoints: list(propertyEndpoints), Reserved: number(propertyReserved), ForNotices: number(propertyNotices),
		ForReservations: number(propertyReservation),
		GivenRegion:     text(propertyRegion), Push: text(propertyPush) == "true",
		ZonalShift:     text(propertyZonalShift) == "true",
		FunctionMemory: memory, MemoryLike: text(propertyMemoryLike), Deployment: text(propertyDeployment)}, whole
}
