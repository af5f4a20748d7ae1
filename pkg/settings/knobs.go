package settings

import (
	"slices"
	"strings"
	"time"
)

// functionKnobs is the one place where the settings of the functions are written down.
func functionKnobs() []settingBinding[Values] {
	return slices.Concat(clusterKnobs(), wiringKnobs(), latencyKnobs(), timeoutKnobs(), sizingKnobs(), priceKnobs(),
		rebalanceKnobs(), disruptionKnobs(), operationKnobs())
}

func clusterKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		textSetting(Setting{Name: "clusterName", Env: "CLUSTER_NAME", Unit: "name", Required: true,
			Allowed: "the name of the EKS cluster, 1 to 100 letters, digits, - and _, starting with a letter or a digit",
			Doc:     "The EKS cluster that Joiner adds nodes to and removes nodes from."},
			func(v *Values) *string { return &v.ClusterName }, isClusterName),
		textSetting(Setting{Name: "clusterEndpoint", Env: "CLUSTER_ENDPOINT", Unit: "URL",
			Allowed: "an https URL",
			Doc:     "Address of the API server; without it the stack asks EKS once in each deployment."},
			func(v *Values) *string { return &v.ClusterEndpoint }, isHTTPS),
		textSetting(Setting{Name: "clusterCABundle", Env: "CLUSTER_CA_BUNDLE", Unit: "base64 of PEM",
			Allowed: "the certificate authority of the cluster as eks:DescribeCluster prints it, base64 of a PEM certificate",
			Doc:     "Certificate authority of the API server; without it the stack asks EKS once in each deployment."},
			func(v *Values) *string { return &v.ClusterCABundle }, isCABundle),
		textSetting(Setting{Name: "serviceCIDR", Env: "SERVICE_CIDR", Unit: "CIDR", ByStack: true,
			Allowed: "the range of addresses of the cluster's services, such as 10.100.0.0/16",
			Doc:     "From which range of addresses the cluster gives its services theirs."},
			func(v *Values) *string { return &v.ServiceCIDR }, isCIDR),
	}
}

func wiringKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
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
			func(v *Values) *string { return &v.PushPath }, isPushPath),
	}
}

func latencyKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		durationSetting(Setting{Name: "watchDuration", Env: "WATCH_DURATION", Default: "50s",
			Doc: "How long an invocation that found work stays and watches for more."},
			durationRange{0, 55 * time.Second}, func(v *Values) *time.Duration { return &v.WatchDuration }),
		durationSetting(Setting{Name: "batchIdle", Env: "BATCH_IDLE_DURATION", Default: "1s",
			Doc: "How long no new pod must have come before pods are packed, so that those of a burst share nodes; not waited for while nodes go away."},
			durationRange{0, 10 * time.Second}, func(v *Values) *time.Duration { return &v.BatchIdle }),
		durationSetting(Setting{Name: "batchMax", Env: "BATCH_MAX_DURATION", Default: "10s",
			Doc: "How long pods wait for others of their burst at most."},
			durationRange{0, time.Minute}, func(v *Values) *time.Duration { return &v.BatchMax }),
		boolSetting(Setting{Name: "alwaysWatch", Env: "ALWAYS_WATCH", Default: "false",
			Doc: "Stay and watch even when there was no work, so that a new pod never waits for the next minute."},
			func(v *Values) *bool { return &v.AlwaysWatch }),
		boolSetting(Setting{Name: "push", Env: "PUSH", Default: "false",
			Doc: "Have a webhook of the cluster announce pods that found no node, and deleted Nodes and NodeClaims, so that nobody waits for the next minute."},
			func(v *Values) *bool { return &v.Push }),
		boolSetting(Setting{Name: "nominatedPodsOnly", Env: "NOMINATED_PODS_ONLY", Default: "true",
			Doc: "Keep a new node for the pods it was planned for until they are there, at the longest a minute, and the replacement of a node for the pods evicted from that, at the longest two minutes after its drain began, so that a tight plan of unlike pods comes true."},
			func(v *Values) *bool { return &v.NominatedPodsOnly }),
		durationSetting(Setting{Name: "unavailableOfferingTTL", Env: "UNAVAILABLE_OFFERING_TTL", Default: "3m",
			Doc: "How long an offer that had no capacity is not tried again."},
			durationRange{10 * time.Second, time.Hour},
			func(v *Values) *time.Duration { return &v.UnavailableOfferingTTL }),
	}
}

func timeoutKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		durationSetting(Setting{Name: "launchTimeout", Env: "LAUNCH_TIMEOUT", Default: "5m",
			Doc: "A NodeClaim without an instance after this time is given up."},
			durationRange{time.Minute, time.Hour}, func(v *Values) *time.Duration { return &v.LaunchTimeout }),
		durationSetting(Setting{Name: "registrationTimeout", Env: "REGISTRATION_TIMEOUT", Default: "15m",
			Doc: "An instance whose node has not joined the cluster after this time is given up."},
			durationRange{time.Minute, 2 * time.Hour},
			func(v *Values) *time.Duration { return &v.RegistrationTimeout }),
		durationSetting(Setting{Name: "initializationTimeout", Env: "INITIALIZATION_TIMEOUT", Default: "30m",
			Doc: "A node that joined but is not ready for pods after this time is given up."},
			durationRange{time.Minute, 6 * time.Hour},
			func(v *Values) *time.Duration { return &v.InitializationTimeout }),
		durationSetting(Setting{Name: "detachTimeout", Env: "DETACH_TIMEOUT", Default: "30m",
			Doc: "A drained node whose volumes are still attached after this time is ended all the same; 0s waits for ever, as Karpenter does."},
			durationRange{0, 24 * time.Hour}, func(v *Values) *time.Duration { return &v.DetachTimeout }),
		boolSetting(Setting{Name: "nodeRepair", Env: "NODE_REPAIR", Default: "false",
			Doc: "Replace by force a node that stays unhealthy, unless more than a fifth of its pool is (Karpenter's gate NodeRepair)."},
			func(v *Values) *bool { return &v.NodeRepair }),
		durationSetting(Setting{Name: "garbageCollectionMinAge", Env: "GARBAGE_COLLECTION_MIN_AGE", Default: "30s",
			Doc: "An instance without a NodeClaim is terminated only when it is older than this."},
			durationRange{10 * time.Second, time.Hour},
			func(v *Values) *time.Duration { return &v.GarbageCollectionMinAge }),
		durationSetting(Setting{Name: "catalogMaxAge", Env: "CATALOG_MAX_AGE", Default: "24h",
			Doc: "A catalog older than this is still used, but reported as stale."},
			durationRange{10 * time.Minute, 720 * time.Hour},
			func(v *Values) *time.Duration { return &v.CatalogMaxAge }),
	}
}

func sizingKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		fractionSetting(Setting{Name: "vmMemoryOverheadPercent", Env: "VM_MEMORY_OVERHEAD_PERCENT", Default: "0.075",
			Doc: "Share of the advertised memory that a new node is expected to lack, where the real figure is not known yet."},
			func(v *Values) *float64 { return &v.VMMemoryOverheadPercent }),
		wholeSetting(Setting{Name: "reservedENIs", Env: "RESERVED_ENIS", Default: "0", Unit: "network interfaces",
			Doc: "Network interfaces per node that pods cannot use; they lower the number of pods a node holds."},
			wholeRange{0, 100}, func(v *Values) *int { return &v.ReservedENIs }),
		wholeSetting(Setting{Name: "maxNodeClaimsPerPass", Env: "MAX_NODE_CLAIMS_PER_PASS", Default: "100",
			Unit: "NodeClaims",
			Doc:  "The most nodes one pass may ask for; the rest waits for the next pass."},
			wholeRange{1, 1000}, func(v *Values) *int { return &v.MaxNodeClaimsPerPass }),
		wholeSetting(Setting{Name: "packingIterations", Env: "PACKING_ITERATIONS", Default: "400", Unit: "steps",
			Doc: "How many steps the packer may take to make a plan cheaper, each a few nodes packed anew; it stops before where that no longer pays. 0: none."},
			wholeRange{0, 100000}, func(v *Values) *int { return &v.PackingIterations }),
	}
}

func priceKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		numberSetting(Setting{Name: "perNodeOverheadUSD", Env: "PER_NODE_OVERHEAD_USD", Default: "0.0002",
			Unit: "USD per hour",
			Doc:  "What one more node costs beside its price, where plans are compared; more makes fewer, larger nodes."},
			numberRange{0.000001, 10}, func(v *Values) *float64 { return &v.PerNodeOverheadUSD }),
		numberSetting(Setting{Name: "instanceTypePriceFactor", Env: "INSTANCE_TYPE_PRICE_FACTOR", Default: "1.2",
			Unit: "factor",
			Doc:  "How much dearer than the cheapest type others may be that a NodeClaim names as well."},
			numberRange{1, 10}, func(v *Values) *float64 { return &v.InstanceTypePriceFactor }),
		wholeSetting(Setting{Name: "minSpotInstanceTypes", Env: "MIN_SPOT_INSTANCE_TYPES", Default: "15",
			Unit: "instance types",
			Doc:  "How many types a NodeClaim that may be spot names at least where there are so many, at any price."},
			wholeRange{1, 60}, func(v *Values) *int { return &v.MinSpotInstanceTypes }),
		numberSetting(Setting{Name: "maxSpotPoolFraction", Env: "MAX_SPOT_POOL_FRACTION", Default: "0.8",
			Unit: "fraction",
			Doc:  "The most of all spot capacity that is planned in one instance type in one zone, as long as others are to be had; 1 for no limit."},
			numberRange{0.05, 1}, func(v *Values) *float64 { return &v.MaxSpotPoolFraction }),
		boolSetting(Setting{Name: "commitments", Env: "COMMITMENTS", Default: "false",
			Doc: "Read the Savings Plans and Reserved Instances of the account, and use what they have room for before anything else, since it is paid for already. Refresh is allowed to read them and to list all instances."},
			func(v *Values) *bool { return &v.Commitments }),
		numberSetting(Setting{Name: "savingsPlanShare", Env: "SAVINGS_PLAN_SHARE", Default: "1", Unit: "fraction",
			Doc: "The part of the Savings Plans' hourly commitment that instances of this account and region may count on; less where Lambda, Fargate, other regions or other accounts use it too."},
			numberRange{0.01, 1}, func(v *Values) *float64 { return &v.SavingsPlanShare }),
	}
}

func rebalanceKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		choiceSetting(Setting{Name: "rebalance", Env: "REBALANCE", Default: string(RebalanceEvent), Unit: "word",
			Doc: "What a rebalance recommendation of EC2 does where the NodePool's annotation joiner.sh/rebalance does not say: nothing, a Kubernetes event, or a replacement from another pool of capacity before the node is drained."},
			[]string{string(RebalanceIgnore), string(RebalanceEvent), string(RebalanceReplace)},
			func(v *Values, s string) { v.Rebalance = Rebalance(s) }),
		durationSetting(Setting{Name: "rebalanceOfferingCooldown", Env: "REBALANCE_OFFERING_COOLDOWN", Default: "30m",
			Doc: "How long an offer that was left on a recommendation is not bought again."},
			durationRange{time.Minute, 24 * time.Hour},
			func(v *Values) *time.Duration { return &v.RebalanceOfferingCooldown }),
		durationSetting(Setting{Name: "rebalanceMinAge", Env: "REBALANCE_MIN_AGE", Default: "15m",
			Doc: "A node younger than this is not replaced on a recommendation, so that recommendations cannot chase each other."},
			durationRange{0, 24 * time.Hour}, func(v *Values) *time.Duration { return &v.RebalanceMinAge }),
		wholeSetting(Setting{Name: "rebalancesPerHour", Env: "REBALANCES_PER_HOUR", Default: "20", Unit: "nodes",
			Doc: "The most nodes that are replaced on recommendations within an hour; further ones are told as events."},
			wholeRange{0, 1000}, func(v *Values) *int { return &v.RebalancesPerHour }),
	}
}

func operationKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		choiceSetting(Setting{Name: "mode", Env: "MODE", Default: ModeAct, Unit: "word",
			Doc: "Whether Joiner acts, or makes every decision and changes nothing (observe), as beside a Karpenter that runs."},
			[]string{ModeAct, ModeObserve},
			func(v *Values, s string) { v.Mode = s }),
		listSetting(Setting{Name: "karpenterNamespaces", Env: "KARPENTER_NAMESPACES", Default: "kube-system,karpenter",
			Unit:    "list of namespaces",
			Allowed: "names of namespaces, separated by commas",
			Doc:     "Where Karpenter's leader lease may be; while somebody holds it Joiner only observes."},
			func(v *Values) *[]string { return &v.KarpenterNamespaces }, isNamespace),
		choiceSetting(Setting{Name: "preferencePolicy", Env: "PREFERENCE_POLICY", Default: string(PreferenceRespect),
			Unit: "word",
			Doc:  "Whether preferences of pods (preferred affinity, ScheduleAnyway) shape new nodes."},
			[]string{string(PreferenceRespect), string(PreferenceIgnore)},
			func(v *Values, s string) { v.PreferencePolicy = PreferencePolicy(s) }),
		choiceSetting(Setting{Name: "minValuesPolicy", Env: "MIN_VALUES_POLICY", Default: string(MinValuesStrict),
			Unit: "word",
			Doc:  "Whether a NodePool that cannot meet one of its minValues is left out (Strict) or used all the same (BestEffort)."},
			[]string{string(MinValuesStrict), string(MinValuesBestEffort)},
			func(v *Values, s string) { v.MinValuesPolicy = MinValuesPolicy(s) }),
		boolSetting(Setting{Name: "isolatedVPC", Env: "ISOLATED_VPC", Default: "false",
			Doc: "The functions reach no AWS API without a private endpoint: no price list, no instance profile changes."},
			func(v *Values) *bool { return &v.IsolatedVPC }),
		boolSetting(Setting{Name: "zonalShift", Env: "ENABLE_ZONAL_SHIFT", Default: "false",
			Doc: "Launch nothing in a zone while ARC zonal shift takes the cluster's traffic away from it; the cluster must be registered with ARC. Nodes that are there stay."},
			func(v *Values) *bool { return &v.ZonalShift }),
		boolSetting(Setting{Name: "dryRunValidation", Env: "DRY_RUN_VALIDATION", Default: "true",
			Doc: "Ask EC2 with dry runs whether instances of an EC2NodeClass could be launched, before it is called ready. For that refresh is allowed all that a launch needs."},
			func(v *Values) *bool { return &v.DryRunValidation }),
		choiceSetting(Setting{Name: "decisionLog", Env: "DECISION_LOG", Default: DecisionLogLines, Unit: "word",
			Doc: "What is kept of every pass with a decision: nothing (off), a structured line in the log (log), or also the whole pass in the catalog bucket (store), from which joiner replay and joiner shadow read. A pass in which Joiner itself failed about something is kept whole in any case."},
			[]string{DecisionLogOff, DecisionLogLines, DecisionLogStore},
			func(v *Values, s string) { v.DecisionLog = s }),
		choiceSetting(Setting{Name: "logLevel", Env: "LOG_LEVEL", Default: "info", Unit: "word",
			Doc: "The least important log line that is written."},
			[]string{"debug", "info", "warn", "error"},
			func(v *Values, s string) { v.LogLevel = s }),
	}
}

// stackKnobs is the one place where the settings that only the stack reads are written down.
func stackKnobs() []settingBinding[StackValues] {
	return slices.Concat(makeKnobs(), companyKnobs(), powerKnobs(), networkKnobs(), watchKnobs())
}

// powerKnobs are about what the functions are given to run with, and whether it is recorded.
func powerKnobs() []settingBinding[StackValues] {
	return []settingBinding[StackValues]{
		boolSetting(Setting{Name: "tracing", Default: "true",
			Doc: "Record the invocations of the functions in X-Ray."},
			func(v *StackValues) *bool { return &v.Tracing }),
		wholeSetting(Setting{Name: "functionMemory", Default: "512", Unit: "MiB",
			Doc: "Memory of provision, lifecycle, disrupt and refresh. Lambda gives a function as much of a CPU as it has of 1,769 MiB, so this is how fast they decide: clusters of some thousand nodes want 1,769 or 3,008."},
			wholeRange{512, 10240}, func(v *StackValues) *int { return &v.FunctionMemory }),
		wholeSetting(Setting{Name: "interruptionConcurrency", Default: "100", Unit: "invocations",
			Doc: "How many notices that leave two minutes spotinterruption may handle at once: as much of the account's concurrency is reserved for it, so that nobody else's functions keep a notice waiting. It is a ceiling too; 0 reserves nothing, and it shares what is left with everybody."},
			wholeRange{0, 1000}, func(v *StackValues) *int { return &v.InterruptionConcurrency }),
		wholeSetting(Setting{Name: "reservationConcurrency", Default: "10", Unit: "invocations",
			Doc: "The same for reservationinterruption, whose notices come only to instances in interruptible capacity reservations."},
			wholeRange{0, 1000}, func(v *StackValues) *int { return &v.ReservationConcurrency }),
	}
}

func makeKnobs() []settingBinding[StackValues] {
	return []settingBinding[StackValues]{
		choiceSetting(Setting{Name: "architecture", Default: "arm64", Unit: "word",
			Doc: "Processor the functions run on; arm64 is the cheaper one."},
			[]string{"arm64", "x86_64"},
			func(v *StackValues, s string) { v.Architecture = s }),
		textSetting(Setting{Name: "nodeRole", Unit: "role name",
			Allowed: "the name, without path, of an IAM role that exists, at most 64 letters, digits and _+=,.@-",
			Doc:     "An existing role for the nodes; without it the stack makes KarpenterNodeRole-<cluster> and its access entry."},
			func(v *StackValues) *string { return &v.NodeRole }, isRoleName),
		listSetting(Setting{Name: "nodeRoles", Unit: "list of roles",
			Allowed: "names, with their path where they have one, or ARNs of IAM roles, separated by commas",
			Doc:     "Further existing roles that EC2NodeClasses may name; Joiner may hand these and its own to EC2, and no others. Each needs an access entry of type EC2_LINUX or EC2_WINDOWS."},
			func(v *StackValues) *[]string { return &v.NodeRoles }, isRole),
		listSetting(Setting{Name: "imageParameters", Unit: "list of parameters",
			Allowed: "names of SSM parameters, separated by commas, with letters, digits and _./-, and * for anything",
			Doc:     "SSM parameters of your own that EC2NodeClasses may name as ssmParameter, a * standing for anything, as in /golden/*. Those under /aws/service/ may always be named."},
			func(v *StackValues) *[]string { return &v.ImageParameters }, isParameter),
		listSetting(Setting{Name: "nodePolicies", Unit: "list of policies",
			Allowed: "names of AWS managed policies or ARNs, separated by commas",
			Doc:     "Managed policies that the node role is given besides the usual four."},
			func(v *StackValues) *[]string { return &v.NodePolicies }, isPolicy),
		statementsSetting(Setting{Name: "provisionStatements", Unit: "list of IAM statements",
			Allowed: "a JSON list of IAM statements that allow named actions (no service as a whole) on ARNs, or on * under a condition",
			Doc:     "What the role of provision may do besides what Joiner needs, as IAM writes it, such as to use the KMS key of volumes."},
			func(v *StackValues) *[]Statement { return &v.ProvisionStatements }),
		pairsSetting(Setting{Name: "nodeTags", Unit: "list of tags",
			Allowed: "key=value, separated by commas, keys of at most 128 characters that do not begin with aws:",
			Doc:     "Tags on the node role."},
			func(v *StackValues) *[]Pair { return &v.NodeTags }, isTag),
		boolSetting(Setting{Name: "windowsNodes", Default: "false",
			Doc: "Also make KarpenterNodeRole-<cluster>-windows with an access entry of type EC2_WINDOWS, for EC2NodeClasses of Windows nodes."},
			func(v *StackValues) *bool { return &v.WindowsNodes }),
		textSetting(Setting{Name: "windowsNodeRole", Unit: "role name",
			Allowed: "the name, without path, of an IAM role that exists, at most 64 letters, digits and _+=,.@-",
			Doc:     "An existing role for Windows nodes; with windowsNodes and without it the stack makes one."},
			func(v *StackValues) *string { return &v.WindowsNodeRole }, isRoleName),
		textSetting(Setting{Name: "deployment", Unit: "text", Allowed: "any text",
			Doc: "A text that is another one in each deployment, so that the stack reads endpoint, certificate authority and service addresses of the cluster anew; without it the time of the synthesis."},
			func(v *StackValues) *string { return &v.Deployment }, anyText),
		wholeOf(Setting{Name: "logRetentionDays", Default: "14", Unit: "days",
			Doc: "How long the logs of the functions are kept."},
			[]int{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545,
				731, 1096, 1827, 2192, 2557, 2922, 3288, 3653},
			func(v *StackValues) *int { return &v.LogRetentionDays }),
		wholeOf(Setting{Name: "decisionLogDays", Default: "14", Unit: "days",
			Doc: "How long whole passes are kept in the catalog bucket."},
			[]int{1, 3, 5, 7, 14, 30, 60, 90},
			func(v *StackValues) *int { return &v.DecisionLogDays }),
		choiceSetting(Setting{Name: "onDelete", Default: OnDeleteKeep, Unit: "word",
			Doc: "What becomes of the nodes when the stack is deleted: they stay and Joiner's finalizers go (keep), or every NodeClaim is deleted and drained first (drain)."},
			[]string{OnDeleteKeep, OnDeleteDrain},
			func(v *StackValues, s string) { v.OnDelete = s }),
		boolSetting(Setting{Name: "terminationProtection", Default: "true",
			Doc: "Have CloudFormation refuse to delete the stack until this is false, or somebody turns it off for the stack."},
			func(v *StackValues) *bool { return &v.TerminationProtection }),
		textSetting(Setting{Name: "hibernationSchedule", Unit: "cron",
			Allowed: "minute, hour, day of month, month and day of week as cron has them, such as 0 20 * * 1-5",
			Doc:     "When the whole cluster falls asleep: no new nodes, and those there are drained within budgets, until hibernationDuration is over. NodePools with the annotation joiner.sh/hibernation-schedule have their own schedule, or with never none."},
			func(v *StackValues) *string { return &v.HibernationSchedule }, isCron),
		durationSetting(Setting{Name: "hibernationDuration",
			Doc: "How long the cluster sleeps from each start of sleep on."},
			durationRange{time.Minute, 336 * time.Hour},
			func(v *StackValues) *time.Duration { return &v.HibernationDuration }),
		textSetting(Setting{Name: "hibernationTimeZone", Default: "UTC", Unit: "IANA name",
			Allowed: "the IANA name of a time zone, such as Europe/Berlin",
			Doc:     "The time zone in which sleep is read."},
			func(v *StackValues) *string { return &v.HibernationTimeZone }, isZone),
		textSetting(Setting{Name: "distFolder", Default: ".local/dist", Unit: "folder",
			Allowed: "a folder with <GOARCH>/<function>/bootstrap in it",
			Doc:     "Where make package left the function binaries."},
			func(v *StackValues) *string { return &v.DistFolder }, anyText),
	}
}

// companyKnobs are what an organization asks of everything in its accounts.
func companyKnobs() []settingBinding[StackValues] {
	return []settingBinding[StackValues]{
		textSetting(Setting{Name: "account", Unit: "account number", Allowed: "twelve digits",
			Doc: "The AWS account that the stack belongs to; without it that of the credentials. With the key clusters one app deploys to several."},
			func(v *StackValues) *string { return &v.Account }, isAccount),
		textSetting(Setting{Name: "region", Unit: "region", Allowed: "the name of a region, such as eu-central-1",
			Doc: "The region that the stack belongs to; without it that of the credentials."},
			func(v *StackValues) *string { return &v.Region }, isRegion),
		textSetting(Setting{Name: "namePrefix", Unit: "text",
			Allowed: "at most 20 letters, digits and -, starting with a letter",
			Doc:     "Put before the names of the stack and of all that it names, such as acme-."},
			func(v *StackValues) *string { return &v.NamePrefix }, isNamePrefix),
		textSetting(Setting{Name: "rolePath", Default: "/", Unit: "path",
			Allowed: "/, or a path such as /team/joiner/ that begins and ends with /",
			Doc:     "The path of the IAM roles and instance profiles that the stack makes. Choose it before the first deployment: CloudFormation moves no role that has a name of its own."},
			func(v *StackValues) *string { return &v.RolePath }, isRolePath),
		textSetting(Setting{Name: "permissionsBoundary", Unit: "policy ARN",
			Allowed: "the ARN of a managed policy",
			Doc:     "The permissions boundary of the IAM roles that the stack makes. It must admit what infra/stack/testdata/permissions.txt lists."},
			func(v *StackValues) *string { return &v.PermissionsBoundary }, isPolicyARN),
		textSetting(Setting{Name: "kmsKey", Unit: "key ARN",
			Allowed: "the ARN of a KMS key, such as arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
			Doc:     "A key of yours that encrypts bucket, queues, topic and logs; infra/README.md says what its policy must allow."},
			func(v *StackValues) *string { return &v.KMSKey }, isKeyARN),
		pairsSetting(Setting{Name: "tags", Unit: "list of tags",
			Allowed: "key=value, separated by commas, keys of at most 128 characters that do not begin with aws:",
			Doc:     "Tags on everything that the stack makes. Nodes have the tags of their EC2NodeClass."},
			func(v *StackValues) *[]Pair { return &v.Tags }, isTag),
	}
}

func networkKnobs() []settingBinding[StackValues] {
	return []settingBinding[StackValues]{
		textSetting(Setting{Name: "vpcID", Unit: "VPC id", Allowed: "an id such as vpc-0123456789abcdef0",
			Doc: "The VPC that the functions run in, for a cluster whose API server has a private endpoint only; without it they run outside."},
			func(v *StackValues) *string { return &v.VPCID }, isID("vpc")),
		listSetting(Setting{Name: "subnetIDs", Unit: "list of subnet ids",
			Allowed: "ids such as subnet-0123456789abcdef0, separated by commas",
			Doc:     "The subnets of vpcID that the functions run in, with a NAT gateway or endpoints to reach AWS."},
			func(v *StackValues) *[]string { return &v.SubnetIDs }, isID("subnet")),
		listSetting(Setting{Name: "securityGroupIDs", Unit: "list of security group ids",
			Allowed: "ids such as sg-0123456789abcdef0, separated by commas",
			Doc:     "The security groups of the functions in the VPC; without them the stack makes one that may call out to port 443."},
			func(v *StackValues) *[]string { return &v.SecurityGroupIDs }, isID("sg")),
		textSetting(Setting{Name: "clusterSecurityGroupID", Unit: "security group id",
			Allowed: "an id such as sg-0123456789abcdef0",
			Doc:     "The security group of the cluster, into which the stack lets the functions on port 443."},
			func(v *StackValues) *string { return &v.ClusterSecurityGroupID }, isID("sg")),
		boolSetting(Setting{Name: "vpcEndpoints", Default: "false",
			Doc: "Make interface endpoints for EC2, SSM, EKS and Lambda in subnetIDs, for a VPC without NAT; the synthesis prints what they cost."},
			func(v *StackValues) *bool { return &v.VPCEndpoints }),
		listSetting(Setting{Name: "vpcEndpointServices", Default: strings.Join(endpointServices(), ","),
			Unit: "list of services", Allowed: "some of " + strings.Join(endpointServices(), ", "),
			Doc: "For which services vpcEndpoints makes one: leave out those that the VPC has, since EC2 refuses a second one with private DNS."},
			func(v *StackValues) *[]string { return &v.VPCEndpointServices },
			func(s string) bool { return slices.Contains(endpointServices(), s) }),
	}
}

// endpointServices are the services of AWS that the functions call by themselves, through a VPC if they are in one.
func endpointServices() []string { return []string{"ec2", "ssm", "eks", "lambda"} }

func watchKnobs() []settingBinding[StackValues] {
	return []settingBinding[StackValues]{
		textSetting(Setting{Name: "alarmEmail", Unit: "e-mail address",
			Allowed: "an e-mail address",
			Doc:     "Who gets the alarms; without it they go to the topic of the stack alone."},
			func(v *StackValues) *string { return &v.AlarmEmail }, isEmail),
		durationSetting(Setting{Name: "unschedulablePodsAlarm", Default: "15m",
			Doc: "An alarm rings when a pod that no NodePool can hold is older than this."},
			durationRange{time.Minute, 24 * time.Hour},
			func(v *StackValues) *time.Duration { return &v.UnschedulablePodsAlarm }),
		durationSetting(Setting{Name: "staleCatalogAlarm", Default: "6h",
			Doc: "An alarm rings when prices and instance types are older than this."},
			durationRange{30 * time.Minute, 168 * time.Hour},
			func(v *StackValues) *time.Duration { return &v.StaleCatalogAlarm }),
		moneySetting(Setting{Name: "priceAlarmUSD", Unit: "USD per hour",
			Doc: "An alarm rings when all nodes together cost more than this; without it there is no such alarm."},
			func(v *StackValues) *float64 { return &v.PriceAlarmUSD }),
		wholeSetting(Setting{Name: "nodesAlarm", Unit: "nodes",
			Doc: "An alarm rings when there are more nodes than this; without it there is no such alarm."},
			wholeRange{1, 100000}, func(v *StackValues) *int { return &v.NodesAlarm }),
		choiceSetting(Setting{Name: "alarms", Default: AlarmsAll, Unit: "word",
			Doc: "Which alarms are made, at 0.10 USD a month each: all of them, the essential ones that tell that pods get no nodes or notices are lost, or none."},
			[]string{AlarmsAll, AlarmsEssential, AlarmsNone},
			func(v *StackValues, s string) { v.Alarms = s }),
		boolSetting(Setting{Name: "dashboard", Default: "true",
			Doc: "Make a CloudWatch dashboard."},
			func(v *StackValues) *bool { return &v.Dashboard }),
	}
}
