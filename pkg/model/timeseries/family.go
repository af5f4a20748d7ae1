package timeseries

import (
	"slices"

	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/metrics"
)

// Kind is the type of a metric.
type Kind int

// The types of metrics.
const (
	Gauge Kind = iota
	Counter
	Histogram
	Summary
)

// Detail says how many series are sent.
type Detail int

// The degrees of detail, each with those before.
const (
	Cluster Detail = iota // few, whatever the size of the cluster
	Nodes                 // some dozens for each node and NodeClaim
	All                   // besides, series for each pod and each offering of EC2
)

// Family is one metric.
type Family struct {
	Name   string
	Kind   Kind
	Detail Detail   // from which on it is sent
	Labels []string // sorted; nil for those of a node
	Help   string
}

// FindFamily returns the metric of that name.
func FindFamily(name string) (Family, bool) {
	return lists.Find(Families(), func(f Family) bool { return f.Name == name })
}

// Families are all metrics that may be sent.
func Families() []Family {
	return slices.Concat(claimFamilies(), nodeFamilies(), podFamilies(), poolFamilies(), conditionFamilies(),
		disruptionFamilies(), clusterFamilies(), providerFamilies(), ownFamilies())
}

func claimFamilies() []Family {
	return []Family{
		{metrics.ClaimsCreated, Counter, Cluster, []string{"min_values_relaxed", "nodepool", "reason"},
			"NodeClaims created, by reason and NodePool."},
		{metrics.ClaimsEnded, Counter, Cluster, []string{"capacity_type", "nodepool", "zone"},
			"NodeClaims that are gone, by NodePool, capacity type and zone."},
		{metrics.ClaimsDisrupt, Counter, Cluster, disruptedLabels(), "NodeClaims disrupted, by reason and NodePool."},
		{podsDisrupted, Counter, Cluster, disruptedLabels(),
			"Pods that need another node because their NodeClaim was disrupted."},
		{claimTermination, Histogram, Cluster, []string{"nodepool"},
			"From a NodeClaim's deletion until it is gone, in seconds."},
		{instanceTermination, Histogram, Cluster, []string{"nodepool"},
			"From the request to terminate an instance until its NodeClaim is gone, in seconds."},
	}
}

func disruptedLabels() []string {
	return []string{"capacity_type", "consolidation_policy", "nodepool", "reason", "termination_mode"}
}

func nodeFamilies() []Family {
	return []Family{
		{nodesCreated, Counter, Cluster, []string{"nodepool", "zone"}, "Nodes that registered, by NodePool and zone."},
		{nodesTerminated, Counter, Cluster, []string{"nodepool", "zone"}, "Nodes that are gone, by NodePool and zone."},
		{nodesDrained, Counter, Cluster, []string{"nodepool"}, "Nodes that were drained, by NodePool."},
		{nodeTermination, Summary, Cluster, []string{"nodepool"},
			"From a node's deletion until it is gone, in seconds."},
		{nodeLifetime, Histogram, Cluster, []string{"nodepool"}, "Age of nodes when they end, in seconds."},
		{nodesAllocatable, Gauge, Nodes, nil, "What pods may use of the node."},
		{nodesPodRequests, Gauge, Nodes, nil, "What the node's pods request, those of DaemonSets included."},
		{nodesDaemonRequests, Gauge, Nodes, nil, "What the node's pods of DaemonSets request."},
		{nodesOverhead, Gauge, Nodes, nil, "Capacity of the node that pods may not use."},
		{nodesAge, Gauge, Nodes, nil, "Age of the node in seconds."},
		{utilization, Gauge, Cluster, []string{"resource_type"},
			"What pods request of what nodes have, in percent."},
	}
}

func podFamilies() []Family {
	return []Family{
		{podsState, Gauge, All, []string{"arch", "capacity_type", "instance_type", "managed", "name", "namespace",
			"node", "nodepool", "owner", "phase", "ready", "scheduled", "zone"}, "1 for each pod."},
		{podsStartup, Summary, Cluster, []string{}, "From a pod's creation until it is ready, in seconds."},
		{podsBound, Histogram, Cluster, []string{"dynamic_resources"}, "From a pod's creation until it is bound, in seconds."},
		{metrics.DecisionTime, Histogram, Cluster, []string{},
			"From a pod's creation until a NodeClaim is made for it, in seconds."},
		{podsProvisioningBound, Histogram, Cluster, []string{"dynamic_resources"},
			"From the NodeClaim that was made for a pod until the pod is bound, in seconds."},
		{podsProvisioningStartup, Histogram, Cluster, []string{},
			"From the NodeClaim that was made for a pod until the pod is ready, in seconds."},
		{podsUnstarted, Gauge, All, []string{"name", "namespace"}, "Age of a pod that is not ready yet, in seconds."},
		{podsUnbound, Gauge, All, []string{"dynamic_resources", "name", "namespace"},
			"Age of a pod that is not bound yet, in seconds."},
		{podsProvisioningUnstarted, Gauge, All, []string{"name", "namespace"},
			"Seconds since a NodeClaim was made for a pod that is not ready yet."},
		{metrics.Unbound, Gauge, All, []string{"dynamic_resources", "name", "namespace"},
			"Seconds since a NodeClaim was made for a pod that is not bound yet."},
		{podsUndecided, Gauge, All, []string{"name", "namespace"},
			"Age of a pod that no NodeClaim was made for and that is not bound yet, in seconds."},
		{podsEvictions, Counter, Cluster, []string{"code"}, "Evictions that were asked for, by answer."},
		{podsDrained, Counter, Cluster, []string{"reason"}, "Pods that left drained nodes, by reason."},
	}
}

func poolFamilies() []Family {
	return []Family{
		{poolsUsage, Gauge, Cluster, []string{"nodepool", "resource_type"}, "What the nodes of the NodePool have."},
		{poolsLimit, Gauge, Cluster, []string{"nodepool", "resource_type"}, "Limits of the NodePool."},
		{metrics.PoolCost, Gauge, Cluster, []string{"nodepool"},
			"Price of the NodePool's nodes in USD per hour, as NodeOverlays have it."},
		{poolsAllowed, Gauge, Cluster, []string{"nodepool", "reason"},
			"Nodes of the NodePool that may be disrupted at the same time."},
		{poolsConsuming, Gauge, Cluster, []string{"nodepool", "reason"},
			"Nodes of the NodePool that count against its budgets."},
	}
}

func conditionFamilies() []Family {
	var out []Family
	for _, k := range conditionKinds() {
		out = append(out,
			Family{"operator_" + k.name + "_status_condition_count", Gauge, k.detail, k.labels("name", "namespace",
				"reason", "status", "type"), "1 for each status condition that an object has."},
			Family{"operator_" + k.name + "_status_condition_current_status_seconds", Gauge, k.detail, k.labels("name",
				"namespace", "reason", "status", "type"), "For how long a status condition has been as it is."},
			Family{"operator_" + k.name + "_status_condition_transitions_total", Counter, Cluster, k.labels("reason",
				"status", "type"), "Changes of status conditions, by what they became."},
			Family{"operator_" + k.name + "_termination_current_time_seconds", Gauge, k.detail, k.labels("name",
				"namespace"), "For how long an object has been on its way out."},
			Family{"operator_" + k.name + "_termination_duration_seconds", Histogram, Cluster, k.labels(),
				"From an object's deletion until it is gone, in seconds."})
	}
	return out
}

func disruptionFamilies() []Family {
	return []Family{
		{metrics.Eligible, Gauge, Cluster, []string{"reason"}, "Nodes that are a case for disruption and may go."},
		{metrics.Decisions, Counter, Cluster, []string{"consolidation_type", "decision", "reason"},
			"Disruptions that were begun, by decision and reason."},
		{decisionsByPool, Counter, Cluster, []string{"consolidation_type", "decision", "nodepool", "reason"},
			"Disruptions that were begun, by NodePool, decision and reason."},
		{metrics.Evaluation, Histogram, Cluster, []string{"consolidation_type", "reason"},
			"How long a pass took to decide about disruption, in seconds."},
		{metrics.QueueFailures, Counter, Cluster, []string{"consolidation_type", "decision", "reason"},
			"Disruptions that were taken back."},
		{metrics.Invalidated, Counter, Cluster, []string{"consolidation_type"},
			"Disruptions that did not hold when they were confirmed."},
	}
}

func clusterFamilies() []Family {
	return []Family{
		{buildInfo, Gauge, Cluster, []string{"commit", "goarch", "goversion", "version"}, "1, for the build."},
		{metrics.NodeCount, Gauge, Cluster, []string{}, "Nodes of the cluster and NodeClaims without one."},
		{stateSynced, Gauge, Cluster, []string{}, "1: what is sent was read from the API server just now."},
		{stateUnsynced, Gauge, Cluster, []string{}, "0, see karpenter_cluster_state_synced."},
		{metrics.Unschedulable, Gauge, Cluster, []string{"controller"}, "Pods that the scheduler found no node for."},
		{queueDepth, Gauge, Cluster, []string{"controller", "scheduling_id"}, "Pods that wait for a node."},
		{ignoredPods, Gauge, Cluster, []string{}, "Pending pods that no node is made for."},
		{schedulingDuration, Histogram, Cluster, []string{"controller"},
			"How long passes took to decide, in seconds."},
	}
}

func providerFamilies() []Family {
	return []Family{
		{typeCPU, Gauge, All, []string{"instance_type"}, "vCPUs of the instance type."},
		{typeMemory, Gauge, All, []string{"instance_type"}, "Memory of the instance type in bytes."},
		{offeringAvailable, Gauge, All, []string{"capacity_type", "instance_type", "zone"},
			"1 where the offering is to be had, else 0."},
		{offeringPrice, Gauge, All, []string{"capacity_type", "instance_type", "zone"},
			"Price of the offering in USD per hour."},
		{launchFailures, Counter, Cluster, []string{"capacity_type", "reason", "zone", "zone_id"},
			"Offerings that EC2 refused, by zone, capacity type and reason."},
		{interruptions, Counter, Cluster, []string{"message_type"}, "Notices of EC2 that changed a NodeClaim."},
		{unhealthyInstances, Counter, Cluster, []string{"category"},
			"Status checks of EC2 that instances began to fail."},
	}
}

func ownFamilies() []Family {
	return []Family{
		{metrics.PricePerHour, Gauge, Cluster, []string{}, "Price of all nodes in USD per hour, as AWS lists it."},
		{metrics.PoolNodes, Gauge, Cluster, []string{"capacity_type", "nodepool"}, "NodeClaims with an instance."},
		{metrics.CatalogAge, Gauge, Cluster, []string{}, "Seconds since the catalog of prices was stored."},
		{metrics.IneligibleNodes, Gauge, Cluster, []string{"reason"}, "Nodes that disruption leaves alone, by reason."},
		{seriesSent, Gauge, Cluster, []string{}, "Series of this request and of those beside it."},
		{seriesOmitted, Gauge, Cluster, []string{}, "Series that were left out, being too many."},
	}
}
