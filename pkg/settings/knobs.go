package settings

import (
	"slices"
	"time"
)

// mostNodes is more than a cluster of Kubernetes has.
const mostNodes = 100_000

// functionKnobs is the one place where the settings of the functions are written down.
func functionKnobs() []settingBinding[Values] {
	return slices.Concat(inGroup("Cluster", clusterKnobs()), inGroup("", wiringKnobs()),
		inGroup("Reaction time", latencyKnobs()), inGroup("Life of a node", timeoutKnobs()),
		inGroup("Size of nodes", sizingKnobs()), inGroup("Price", priceKnobs()),
		inGroup("Bounds of the whole cluster", ceilingKnobs()),
		inGroup("Rebalance recommendations", rebalanceKnobs()), inGroup("Disruption", disruptionKnobs()),
		inGroup("Operation", operationKnobs()), inGroup("Prometheus", remoteWriteKnobs()))
}

// inGroup says of settings in which group the documentation shows them.
func inGroup[V any](group string, knobs []settingBinding[V]) []settingBinding[V] {
	for i := range knobs {
		knobs[i].Group = group
	}
	return knobs
}

func clusterKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		textSetting(Setting{Name: "clusterName", Env: "CLUSTER_NAME", Unit: "name", Required: true,
			Allowed: "the name of the EKS cluster, 1 to 100 letters, digits, - and _, starting with a letter or a digit",
			Doc:     "The EKS cluster that Joiner adds nodes to and removes nodes from."},
			func(v *Values) *string { return &v.ClusterName }, matches(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)),
		textSetting(Setting{Name: "clusterEndpoint", Env: "CLUSTER_ENDPOINT", Unit: "URL",
			Allowed: "an https URL",
			Doc:     "Address of the API server; without it the stack asks EKS once in each deployment."},
			func(v *Values) *string { return &v.ClusterEndpoint }, matches(`^https://[^/\s]+/?$`)),
		textSetting(Setting{Name: "clusterCABundle", Env: "CLUSTER_CA_BUNDLE", Unit: "base64 of PEM",
			Allowed: "the certificate authority of the cluster as eks:DescribeCluster prints it, base64 of a PEM certificate",
			Doc:     "Certificate authority of the API server; without it the stack asks EKS once in each deployment."},
			func(v *Values) *string { return &v.ClusterCABundle }, isCABundle),
	}
}

func wiringKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		textSetting(Setting{Name: "serviceCIDR", Env: "SERVICE_CIDR", Unit: "CIDR", ByStack: true,
			Allowed: "the range of addresses of the cluster's services, such as 10.100.0.0/16",
			Doc:     "From which range of addresses the cluster gives its services theirs."},
			func(v *Values) *string { return &v.ServiceCIDR }, matches(`^[0-9a-fA-F.:]+/[0-9]{1,3}$`)),
		textSetting(Setting{Name: "catalogBucket", Env: "CATALOG_BUCKET", Unit: "bucket name", ByStack: true,
			Allowed: "the name of an S3 bucket",
			Doc:     "Where refresh stores the catalog of instance types, offerings and prices."},
			func(v *Values) *string { return &v.CatalogBucket }, anyText),
		textSetting(Setting{Name: "provisionFunction", Env: "PROVISION_FUNCTION", Unit: "function name", ByStack: true,
			Allowed: "the name of a Lambda function",
			Doc:     "The function to wake when pods are about to lose their node."},
			func(v *Values) *string { return &v.ProvisionFunction }, anyText),
		textSetting(Setting{Name: "lifecycleFunction", Env: "LIFECYCLE_FUNCTION", Unit: "function name", ByStack: true,
			Allowed: "the name of a Lambda function",
			Doc:     "The function to wake when a NodeClaim or a node has a next step to take."},
			func(v *Values) *string { return &v.LifecycleFunction }, anyText),
		textSetting(Setting{Name: "refreshFunction", Env: "REFRESH_FUNCTION", Unit: "function name", ByStack: true,
			Allowed: "the name of a Lambda function",
			Doc:     "The function to wake when an EC2NodeClass is new or was changed, or a NodePool was changed."},
			func(v *Values) *string { return &v.RefreshFunction }, anyText),
		textSetting(Setting{Name: "stackID", Env: "STACK_ID", Unit: "ARN", ByStack: true,
			Allowed: "the ARN of a stack",
			Doc:     "The stack whose requests setup answers."},
			func(v *Values) *string { return &v.StackID }, anyText),
		textSetting(Setting{Name: "pushPath", Env: "PUSH_PATH", Unit: "text", ByStack: true,
			Allowed: "at least 32 letters and digits",
			Doc:     "The secret part of the address that the webhook calls."},
			func(v *Values) *string { return &v.PushPath }, matches(`^[A-Za-z0-9]{32,64}$`)),
	}
}

func latencyKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		durationSetting(Setting{Name: "watchDuration", Env: "WATCH_DURATION", Default: "50s", ByTests: true,
			Doc: "How long an invocation that found work stays and watches for more."},
			0, 55*time.Second, func(v *Values) *time.Duration { return &v.WatchDuration }),
		durationSetting(Setting{Name: "batchIdle", Env: "BATCH_IDLE_DURATION", Default: "1s",
			Doc: "How long provision waits for further pods before it packs, so that the pods of a burst share nodes. It does not wait while nodes go away."},
			0, 10*time.Second, func(v *Values) *time.Duration { return &v.BatchIdle }),
		choiceSetting(Setting{Name: "trigger", Env: "TRIGGER", Default: TriggerSchedule, Unit: "word",
			Doc: "How Joiner hears of pending pods: once a minute and while busy (schedule), by a watch that never ends (watch), or by a webhook, also of deleted Nodes (push)."},
			[]string{TriggerSchedule, TriggerWatch, TriggerPush},
			func(v *Values) *string { return &v.Trigger }),
		boolSetting(Setting{Name: "nominatedPodsOnly", Env: "NOMINATED_PODS_ONLY", Default: "true", ByTests: true,
			Doc: "Keep a new node for the pods it was planned for, for a minute at most, so that a tight plan comes true. A replacement waits for the evicted pods, two minutes of their drain at most."},
			func(v *Values) *bool { return &v.NominatedPodsOnly }),
	}
}

func timeoutKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		boolSetting(Setting{Name: "nodeRepair", Env: "NODE_REPAIR", Default: "false",
			Doc: "Replace a node that stays unhealthy by force, unless more than a fifth of its NodePool is unhealthy (Karpenter's gate NodeRepair)."},
			func(v *Values) *bool { return &v.NodeRepair }),
	}
}

func sizingKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		fractionSetting(Setting{Name: "vmMemoryOverheadPercent", Env: "VM_MEMORY_OVERHEAD_PERCENT", Default: "0.075",
			Doc: "Share of the advertised memory that a new node lacks, as long as no node of its type has reported the real figure."},
			func(v *Values) *float64 { return &v.VMMemoryOverheadPercent }),
		wholeSetting(Setting{Name: "reservedENIs", Env: "RESERVED_ENIS", Default: "0", Unit: "network interfaces",
			Doc: "Network interfaces per node that pods cannot use; they lower the number of pods a node holds."},
			0, 100, func(v *Values) *int { return &v.ReservedENIs }),
		wholeSetting(Setting{Name: "maxNodeClaimsPerPass", Env: "MAX_NODE_CLAIMS_PER_PASS", Default: "100",
			ByTests: true, Unit: "NodeClaims",
			Doc: "The most nodes one pass may ask for; the rest waits for the next pass."},
			1, 1000, func(v *Values) *int { return &v.MaxNodeClaimsPerPass }),
	}
}

func priceKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		numberSetting(Setting{Name: "perNodeOverheadUSD", Env: "PER_NODE_OVERHEAD_USD", Default: "0",
			Unit: "USD per hour",
			Doc:  "What you pay per node besides AWS, such as agents with a license per host. It counts as a part of every node's price: more makes fewer, larger nodes. The annotation joiner.sh/node-overhead-usd-per-hour of a NodePool overrides it."},
			0, 10, func(v *Values) *float64 { return &v.PerNodeOverheadUSD }),
		orSwitch(numberSetting(Setting{Name: "commitments", Env: "COMMITMENTS", Default: "false", Unit: "fraction",
			Doc: "Use unused Savings Plans and Reserved Instances of the account before anything else. refresh may then read them and list all instances. A number is the part of Savings Plans to count on."},
			0.01, 1, commitments), func(v *Values, on bool) { *commitments(v) = wholeIf(on) }),
	}
}

func commitments(v *Values) *float64 { return &v.Commitments }

// wholeIf is all of a part, or nothing of it.
func wholeIf(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

func ceilingKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		wholeSetting(Setting{Name: "maxNodes", Env: "MAX_NODES", Default: "0", Unit: "nodes",
			Doc: "The most nodes that Joiner runs, whatever it launches them for. Every NodeClaim counts until it is gone. 0: no bound. Nodes above a lower bound stay."},
			0, mostNodes, func(v *Values) *int { return &v.MaxNodes }),
		wholeSetting(Setting{Name: "maxNodesPerMinute", Env: "MAX_NODES_PER_MINUTE", Default: "0",
			Unit: "nodes per minute",
			Doc:  "The most nodes that Joiner launches or starts in a minute, so that a burst does not overload what they call when they start. 0: no bound."},
			0, mostNodes, func(v *Values) *int { return &v.MaxNodesPerMinute }),
		numberSetting(Setting{Name: "maxUSDPerHour", Env: "MAX_USD_PER_HOUR", Default: "0", Unit: "USD per hour",
			Doc: "The most that EC2 may charge for the instances of all nodes together. A launch counts with the dearest type that it names. 0: no bound. A price that rises later ends no node."},
			0, 1e6, func(v *Values) *float64 { return &v.MaxUSDPerHour }),
	}
}

func rebalanceKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		choiceSetting(Setting{Name: "rebalance", Env: "REBALANCE", Default: string(RebalanceEvent), Unit: "word",
			Doc: "What a rebalance recommendation of EC2 does: nothing (ignore), a Kubernetes event (event), or a replacement from another capacity pool before the drain (replace). The annotation joiner.sh/rebalance of a NodePool overrides it."},
			[]Rebalance{RebalanceIgnore, RebalanceEvent, RebalanceReplace},
			func(v *Values) *Rebalance { return &v.Rebalance }),
		durationSetting(Setting{Name: "rebalanceMinAge", Env: "REBALANCE_MIN_AGE", Default: "15m", ByTests: true,
			Doc: "A node younger than this is not replaced on a recommendation, so that recommendations cannot chase each other."},
			0, 24*time.Hour, func(v *Values) *time.Duration { return &v.RebalanceMinAge }),
	}
}

func operationKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		choiceSetting(Setting{Name: "mode", Env: "MODE", Default: ModeAct, Unit: "word",
			Doc: "Whether Joiner acts, or makes every decision and changes nothing (observe), for example beside a running Karpenter."},
			[]string{ModeAct, ModeObserve},
			func(v *Values) *string { return &v.Mode }),
		choiceSetting(Setting{Name: "manifests", Env: "MANIFESTS", Default: ManifestsInstall, Unit: "word",
			Doc: "Who installs CRDs, RBAC and admission policies: setup (install), or somebody else, such as Argo CD, by what joiner manifests prints (external). setup then has no admin policy; the stack's output Manifests says what is missing, and scheduled functions wait for it."},
			[]string{ManifestsInstall, ManifestsExternal},
			func(v *Values) *string { return &v.Manifests }),
		listSetting(Setting{Name: "karpenterNamespaces", Env: "KARPENTER_NAMESPACES", Default: "kube-system",
			Unit:    "list of namespaces",
			Allowed: "names of namespaces, separated by commas",
			Doc:     "Where Karpenter's leader lease may be; while somebody holds it Joiner only observes. Name no namespace that a tenant may make or write to."},
			func(v *Values) *[]string { return &v.KarpenterNamespaces },
			matches(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)),
		choiceSetting(Setting{Name: "preferencePolicy", Env: "PREFERENCE_POLICY", Default: string(PreferenceRespect),
			Unit: "word",
			Doc:  "Whether new nodes follow the preferences of pods (preferred affinity, ScheduleAnyway)."},
			[]PreferencePolicy{PreferenceRespect, PreferenceIgnore},
			func(v *Values) *PreferencePolicy { return &v.PreferencePolicy }),
		choiceSetting(Setting{Name: "minValuesPolicy", Env: "MIN_VALUES_POLICY", Default: string(MinValuesStrict),
			Unit: "word",
			Doc:  "Whether Joiner skips a NodePool that cannot meet one of its minValues (Strict) or uses it anyway (BestEffort)."},
			[]MinValuesPolicy{MinValuesStrict, MinValuesBestEffort},
			func(v *Values) *MinValuesPolicy { return &v.MinValuesPolicy }),
		boolSetting(Setting{Name: "reservedCapacity", Env: "RESERVED_CAPACITY", Default: "true",
			Doc: "Use the capacity reservations that EC2NodeClasses select, and no others (Karpenter's gate ReservedCapacity). With false Joiner ignores the selections, and EC2 puts instances into open reservations that match."},
			func(v *Values) *bool { return &v.ReservedCapacity }),
		boolSetting(Setting{Name: "isolatedVPC", Env: "ISOLATED_VPC", Default: "false",
			Doc: "The functions reach no AWS API without a private endpoint: no price list, no instance profile changes."},
			func(v *Values) *bool { return &v.IsolatedVPC }),
		boolSetting(Setting{Name: "zonalShift", Env: "ENABLE_ZONAL_SHIFT", Default: "false",
			Doc: "Launch nothing in a zone while ARC zonal shift takes the cluster's traffic away from it; the cluster must be registered with ARC. Existing nodes there stay; Joiner neither terminates nor tags their instances."},
			func(v *Values) *bool { return &v.ZonalShift }),
		boolSetting(Setting{Name: "dryRunValidation", Env: "DRY_RUN_VALIDATION", Default: "true",
			Doc: "Test with dry runs of EC2 whether an EC2NodeClass can launch instances before it becomes Ready. The role of refresh then has all permissions that a launch needs."},
			func(v *Values) *bool { return &v.DryRunValidation }),
		choiceSetting(Setting{Name: "decisionLog", Env: "DECISION_LOG", Default: DecisionLogLines, Unit: "word",
			Doc: "What Joiner keeps of a pass that decides something: nothing (off), a line in the log (log), or also the whole pass in the catalog bucket (store). joiner replay and joiner shadow read the bucket. It always stores a pass in which Joiner itself fails."},
			[]string{DecisionLogOff, DecisionLogLines, DecisionLogStore},
			func(v *Values) *string { return &v.DecisionLog }),
		choiceSetting(Setting{Name: "logLevel", Env: "LOG_LEVEL", Default: "info", Unit: "word",
			Doc: "The lowest level that Joiner logs."},
			[]string{"debug", "info", "warn", "error"},
			func(v *Values) *string { return &v.LogLevel }),
	}
}
