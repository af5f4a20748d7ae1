package timeseries

// The names of the metrics that CloudWatch does not get as well. Those of Karpenter are its own.
const (
	podsDisrupted       = "karpenter_pods_disruption_initiated_total"
	claimTermination    = "karpenter_nodeclaims_termination_duration_seconds"
	instanceTermination = "karpenter_nodeclaims_instance_termination_duration_seconds"

	nodesCreated        = "karpenter_nodes_created_total"
	nodesTerminated     = "karpenter_nodes_terminated_total"
	nodesDrained        = "karpenter_nodes_drained_total"
	nodeTermination     = "karpenter_nodes_termination_duration_seconds"
	nodeLifetime        = "karpenter_nodes_lifetime_duration_seconds"
	nodesAllocatable    = "karpenter_nodes_allocatable"
	nodesPodRequests    = "karpenter_nodes_total_pod_requests"
	nodesDaemonRequests = "karpenter_nodes_total_daemon_requests"
	nodesOverhead       = "karpenter_nodes_system_overhead"
	nodesAge            = "karpenter_nodes_current_lifetime_seconds"
	utilization         = "karpenter_cluster_utilization_percent"

	podsState                 = "karpenter_pods_state"
	podsStartup               = "karpenter_pods_startup_duration_seconds"
	podsBound                 = "karpenter_pods_bound_duration_seconds"
	podsProvisioningBound     = "karpenter_pods_provisioning_bound_duration_seconds"
	podsProvisioningStartup   = "karpenter_pods_provisioning_startup_duration_seconds"
	podsUnstarted             = "karpenter_pods_unstarted_time_seconds"
	podsUnbound               = "karpenter_pods_unbound_time_seconds"
	podsProvisioningUnstarted = "karpenter_pods_provisioning_unstarted_time_seconds"
	podsUndecided             = "karpenter_pods_provisioning_scheduling_undecided_time_seconds"
	podsEvictions             = "karpenter_pods_eviction_requests_total"
	podsDrained               = "karpenter_pods_drained_total"

	poolsUsage     = "karpenter_nodepools_usage"
	poolsLimit     = "karpenter_nodepools_limit"
	poolsAllowed   = "karpenter_nodepools_allowed_disruptions"
	poolsConsuming = "karpenter_nodepools_nodes_consuming_budgets"

	decisionsByPool = "karpenter_voluntary_disruption_decisions_by_nodepool_total"

	buildInfo          = "karpenter_build_info"
	stateSynced        = "karpenter_cluster_state_synced"
	stateUnsynced      = "karpenter_cluster_state_unsynced_time_seconds"
	queueDepth         = "karpenter_scheduler_queue_depth"
	ignoredPods        = "karpenter_scheduler_ignored_pods_count"
	schedulingDuration = "karpenter_scheduler_scheduling_duration_seconds"

	typeCPU            = "karpenter_cloudprovider_instance_type_cpu_cores"
	typeMemory         = "karpenter_cloudprovider_instance_type_memory_bytes"
	offeringAvailable  = "karpenter_cloudprovider_instance_type_offering_available"
	offeringPrice      = "karpenter_cloudprovider_instance_type_offering_price_estimate"
	launchFailures     = "karpenter_cloudprovider_instance_launch_failures_total"
	interruptions      = "karpenter_interruption_received_messages_total"
	unhealthyInstances = "karpenter_interruption_instance_status_unhealthy_total"

	seriesSent    = "joiner_remote_write_series"
	seriesOmitted = "joiner_remote_write_omitted_series"
)
