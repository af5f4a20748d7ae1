package settings

import (
	"slices"
	"strings"
	"time"
)

// stackKnobs is the one place where the settings that only the stack reads are written down.
func stackKnobs() []settingBinding[StackValues] {
	return slices.Concat(inGroup(power, processorKnobs()), inGroup("Roles of nodes", nodeRoleKnobs()),
		inGroup("Deployment", deploymentKnobs()), inGroup("Company rules", companyKnobs()),
		inGroup(power, powerKnobs()), inGroup("Network", networkKnobs()),
		inGroup("Alarms and dashboard", watchKnobs()))
}

const power = "Functions"

// powerKnobs are about what the functions are given to run with, and whether it is recorded.
func powerKnobs() []settingBinding[StackValues] {
	return []settingBinding[StackValues]{
		boolSetting(Setting{Name: "tracing", Default: "true",
			Doc: "Record the invocations of the functions in X-Ray."},
			func(v *StackValues) *bool { return &v.Tracing }),
		orAuto(wholeSetting(Setting{Name: "functionMemory", Default: auto, Unit: "MiB",
			Doc: "Memory of provision, lifecycle, disrupt and refresh; 1,769 MiB come with one vCPU. auto fits the nodes at deployment and never shrinks."},
			leastFunctionMemory, mostFunctionMemory, functionMemory), functionMemory),
		boolSetting(Setting{Name: "interruptionHandling", Default: "true",
			Doc: "React when EC2 interrupts, reboots or retires an instance. Set false if a node termination handler does, as for Karpenter without INTERRUPTION_QUEUE."},
			func(v *StackValues) *bool { return &v.InterruptionHandling }),
		orAuto(wholeSetting(Setting{Name: "interruptionConcurrency", Default: auto, Unit: "invocations",
			Doc: "Concurrency that spotinterruption reserves, so that interruptions never wait for other functions. It is a ceiling too; 0 reserves nothing. reservationinterruption gets the same, but 10 at most. auto shares the usual quota of 1,000 among the clusters of the same account and region in cdk.json: 100 for a few, none for more than 20."},
			0, 1000, interruptionConcurrency), interruptionConcurrency),
	}
}

func functionMemory(v *StackValues) *int { return &v.FunctionMemory }

func interruptionConcurrency(v *StackValues) *int { return &v.InterruptionConcurrency }

func processorKnobs() []settingBinding[StackValues] {
	return []settingBinding[StackValues]{
		choiceSetting(Setting{Name: "architecture", Default: "arm64", Unit: "word",
			Doc: "Processor the functions run on; arm64 is the cheaper one."},
			[]string{"arm64", "x86_64"},
			func(v *StackValues) *string { return &v.Architecture }),
	}
}

// nodeRoleKnobs are about what nodes, and provision for them, may do and hand to EC2.
func nodeRoleKnobs() []settingBinding[StackValues] {
	return []settingBinding[StackValues]{
		textSetting(Setting{Name: "nodeRole", Unit: "role name",
			Allowed: "the name, without path, of an IAM role that exists, at most 64 letters, digits and _+=,.@-",
			Doc:     "An existing role for the nodes; without it the stack makes KarpenterNodeRole-<cluster> and its access entry."},
			func(v *StackValues) *string { return &v.NodeRole }, matches(`^[A-Za-z0-9_+=,.@-]{1,64}$`)),
		listSetting(Setting{Name: "nodeRoles", Unit: "list of roles",
			Allowed: "names, with their path where they have one, or ARNs of IAM roles, separated by commas",
			Doc:     "Further existing roles that EC2NodeClasses may name; Joiner may hand these and its own to EC2, and no others. Each needs an access entry of type EC2_LINUX or EC2_WINDOWS."},
			func(v *StackValues) *[]string { return &v.NodeRoles }, matches(`^(arn:aws[a-z-]*:iam::[0-9]{12}:role/)?([A-Za-z0-9_+=,.@-]+/)*[A-Za-z0-9_+=,.@-]{1,64}$`)),
		listSetting(Setting{Name: "imageParameters", Unit: "list of parameters",
			Allowed: "names of SSM parameters, separated by commas, with letters, digits and _./-, and * for anything",
			Doc:     "SSM parameters of your own that EC2NodeClasses may name as ssmParameter, a * standing for anything, as in /golden/*. Those under /aws/service/ may always be named."},
			func(v *StackValues) *[]string { return &v.ImageParameters }, matches(`^/?[A-Za-z0-9_.*-]+(/[A-Za-z0-9_.*-]+)*$`)),
		listSetting(Setting{Name: "nodePolicies", Unit: "list of policies",
			Allowed: "names of AWS managed policies or ARNs, separated by commas",
			Doc:     "Managed policies that the node role is given besides the usual four."},
			func(v *StackValues) *[]string { return &v.NodePolicies }, matches(`^(arn:aws[a-z-]*:iam::[0-9a-z]*:policy/)?[A-Za-z0-9_+=,.@/-]{1,128}$`)),
		bindSetting(Setting{Name: "provisionStatements", Unit: "list of IAM statements",
			Allowed: "a JSON list of IAM statements that allow named actions (no service as a whole) on ARNs, or on * under a condition",
			Doc:     "What the role of provision may do besides what Joiner needs, as IAM writes it, such as to use the KMS key of volumes."},
			KindStatements, func(v *StackValues) *[]Statement { return &v.ProvisionStatements }, parseStatements),
		orSwitch(textSetting(Setting{Name: "windowsNodes", Default: "false", Unit: "role name",
			Allowed: "the name, without path, of an IAM role that exists, at most 64 letters, digits and _+=,.@-",
			Doc:     "Whether EC2NodeClasses of Windows nodes have a role with an access entry of type EC2_WINDOWS. true: the stack makes KarpenterNodeRole-<cluster>-windows; or the name of an existing role."},
			func(v *StackValues) *string { return &v.WindowsNodeRole }, matches(`^[A-Za-z0-9_+=,.@-]{1,64}$`)),
			func(v *StackValues, on bool) { v.WindowsNodes = on }),
	}
}

// deploymentKnobs are about deployments, how long things are kept, and when the cluster sleeps.
func deploymentKnobs() []settingBinding[StackValues] {
	return []settingBinding[StackValues]{
		textSetting(Setting{Name: "deployment", Unit: "text", Allowed: "any text",
			Doc: "A text that differs in each deployment, so that the stack reads endpoint and certificate authority of the cluster again. Without it the time of the synthesis."},
			func(v *StackValues) *string { return &v.Deployment }, anyText),
		wholeOf(Setting{Name: "logRetentionDays", Default: "14", Unit: "days",
			Doc: "How long the logs of the functions are kept, and whole passes in the catalog bucket, those 90 days at most."},
			[]int{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545,
				731, 1096, 1827, 2192, 2557, 2922, 3288, 3653},
			func(v *StackValues) *int { return &v.LogRetentionDays }),
		choiceSetting(Setting{Name: "onDelete", Default: OnDeleteKeep, Unit: "word",
			Doc: "What becomes of the nodes when the stack is deleted: they stay and Joiner's finalizers go (keep), or every NodeClaim is deleted and drained first (drain)."},
			[]string{OnDeleteKeep, OnDeleteDrain},
			func(v *StackValues) *string { return &v.OnDelete }),
		boolSetting(Setting{Name: "terminationProtection", Default: "true",
			Doc: "CloudFormation refuses to delete the stack until you deploy with false, or turn the protection off for the stack."},
			func(v *StackValues) *bool { return &v.TerminationProtection }),
		textSetting(Setting{Name: "hibernationSchedule", Unit: "cron",
			Allowed: "minute, hour, day of month, month and day of week as cron has them, such as 0 20 * * 1-5 or CRON_TZ=Europe/Berlin 0 20 * * 1-5",
			Doc:     "When the whole cluster hibernates: Joiner launches no nodes and drains existing ones within budgets, until hibernationDuration is over. The time zone is UTC, or comes first, as in CRON_TZ=Europe/Berlin 0 20 * * 1-5. NodePools with the annotation joiner.sh/hibernation-schedule have their own schedule, or with never none."},
			func(v *StackValues) *string { return &v.HibernationSchedule }, isZonedCron),
		durationSetting(Setting{Name: "hibernationDuration",
			Doc: "How long the cluster hibernates after each start."},
			time.Minute, 336*time.Hour,
			func(v *StackValues) *time.Duration { return &v.HibernationDuration }),
	}
}

// companyKnobs returns the settings that an organization asks of everything in its accounts.
func companyKnobs() []settingBinding[StackValues] {
	return []settingBinding[StackValues]{
		textSetting(Setting{Name: "account", Unit: "account number", Allowed: "twelve digits",
			Doc: "The AWS account that the stack belongs to; without it that of the credentials. With the key clusters one app deploys to several."},
			func(v *StackValues) *string { return &v.Account }, matches(`^[0-9]{12}$`)),
		textSetting(Setting{Name: "region", Unit: "region", Allowed: "the name of a region, such as eu-central-1",
			Doc: "The region that the stack belongs to; without it that of the credentials."},
			func(v *StackValues) *string { return &v.Region }, matches(`^[a-z]{2,}(-[a-z]+)+-[0-9]$`)),
		textSetting(Setting{Name: "namePrefix", Unit: "text",
			Allowed: "at most 20 letters, digits and -, starting with a letter",
			Doc:     "Prefix for the name of the stack and all names in it, such as acme-."},
			func(v *StackValues) *string { return &v.NamePrefix }, matches(`^[A-Za-z][A-Za-z0-9-]{0,19}$`)),
		textSetting(Setting{Name: "rolePath", Default: "/", Unit: "path",
			Allowed: "/, or a path such as /team/joiner/ that begins and ends with /",
			Doc:     "The path of the IAM roles and instance profiles that the stack makes. Choose it before the first deployment: CloudFormation moves no role that has a name of its own."},
			func(v *StackValues) *string { return &v.RolePath }, isRolePath),
		textSetting(Setting{Name: "permissionsBoundary", Unit: "policy ARN",
			Allowed: "the ARN of a managed policy",
			Doc:     "The permissions boundary of the IAM roles that the stack makes. It must admit what infra/stack/testdata/permissions.txt lists."},
			func(v *StackValues) *string { return &v.PermissionsBoundary }, matches(`^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[A-Za-z0-9_+=,.@/-]{1,512}$`)),
		textSetting(Setting{Name: "kmsKey", Unit: "key ARN",
			Allowed: "the ARN of a KMS key, such as arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
			Doc:     "A key of yours that encrypts bucket, queues, topic and logs; infra/README.md says what its policy must allow."},
			func(v *StackValues) *string { return &v.KMSKey }, matches(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]{1,64}$`)),
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
		orSwitch(listSetting(Setting{Name: "vpcEndpoints", Default: "false", Unit: "list of services",
			Allowed: "some of " + strings.Join(endpointServices(), ", ") + ", separated by commas",
			Doc:     "Make interface endpoints in subnetIDs, for a VPC without NAT; the synthesis prints what they cost. true: for EC2, SSM, EKS and Lambda. A list leaves out those that the VPC has, since EC2 refuses a second one with private DNS."},
			func(v *StackValues) *[]string { return &v.VPCEndpoints },
			func(s string) bool { return slices.Contains(endpointServices(), s) }), switchEndpoints),
	}
}

func switchEndpoints(v *StackValues, on bool) {
	if on {
		v.VPCEndpoints = endpointServices()
	}
}

// endpointServices are the services of AWS that the functions call by themselves, through a VPC if they are in one.
func endpointServices() []string { return []string{"ec2", "ssm", "eks", "lambda"} }

func watchKnobs() []settingBinding[StackValues] {
	return []settingBinding[StackValues]{
		textSetting(Setting{Name: "alarmEmail", Unit: "e-mail address",
			Allowed: "an e-mail address",
			Doc:     "Who gets the alarms; without it they go to the topic of the stack alone."},
			func(v *StackValues) *string { return &v.AlarmEmail }, matches(`^[^@\s,]+@[^@\s,]+\.[^@\s,]+$`)),
		moneySetting(Setting{Name: "priceAlarmUSD", Unit: "USD per hour",
			Doc: "An alarm rings when all nodes together cost more than this."},
			func(v *StackValues) *float64 { return &v.PriceAlarmUSD }),
		choiceSetting(Setting{Name: "alarms", Default: AlarmsAll, Unit: "word",
			Doc: "Which alarms the stack has, at 0.10 USD a month each: all, the essential ones about pods without nodes and lost notices, or none."},
			[]string{AlarmsAll, AlarmsEssential, AlarmsNone},
			func(v *StackValues) *string { return &v.Alarms }),
		boolSetting(Setting{Name: "dashboard", Default: "true",
			Doc: "Make a CloudWatch dashboard."},
			func(v *StackValues) *bool { return &v.Dashboard }),
	}
}
