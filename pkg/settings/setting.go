package settings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/lists"
)

// Kind is the form of a value.
type Kind string

// The kinds
const (
	KindText       Kind = "text"
	KindChoice     Kind = "choice" // of a few words
	KindWhole      Kind = "whole number"
	KindNumber     Kind = "number"
	KindList       Kind = "list"  // of texts
	KindPairs      Kind = "pairs" // of keys and values
	KindStatements Kind = "IAM statements"
	KindSwitch     Kind = "switch" // true, false, or what the unit says
)

// Setting describes one knob to people and to the stack.
type Setting struct {
	Name     string // camelCase; the context key in cdk.json
	Env      string // environment variable of the functions; empty when only the stack reads the knob
	Default  string // in the form a user would write it; empty means none
	Kind     Kind
	Unit     string // what the value is counted in, or the kind of text it is
	Allowed  string // which values are accepted, completing "allowed: "
	Doc      string // one sentence
	Required bool   // has no default and cannot be left out
	ByStack  bool   // the stack computes it; setting it in cdk.json is refused
	ByTests  bool   // only tests and the local environment change it, by Env; setting it in cdk.json is refused
	Group    string // heading under which the documentation shows it; empty when ByStack
}

// PreferencePolicy says what preferences of a pod (preferred affinities, ScheduleAnyway spreads) count for.
type PreferencePolicy string

// The two preference policies
const (
	PreferenceRespect PreferencePolicy = "Respect" // try to satisfy preferences first, relax them one by one
	PreferenceIgnore  PreferencePolicy = "Ignore"  // place the pod by its hard requirements only
)

// MinValuesPolicy says what becomes of a minValues that cannot be met.
type MinValuesPolicy string

// The two policies
const (
	MinValuesStrict     MinValuesPolicy = "Strict"     // the pool cannot be used
	MinValuesBestEffort MinValuesPolicy = "BestEffort" // a new node takes as many values as there are
)

// Rebalance says what a rebalance recommendation does to a node whose NodePool does not say.
type Rebalance string

// What a recommendation does.
const (
	RebalanceIgnore Rebalance = "ignore" // nothing
	RebalanceEvent  Rebalance = "event"  // a Kubernetes event
	// and a replacement from another pool of capacity, after which the node is drained
	RebalanceReplace Rebalance = "replace"
)

// Whether anything is changed.
const (
	ModeAct     = "act"
	ModeObserve = "observe"
)

// How Joiner hears of pending pods.
const (
	TriggerSchedule = "schedule"
	TriggerWatch    = "watch"
	TriggerPush     = "push"
)

// What becomes of the nodes when the stack is deleted.
const (
	OnDeleteKeep  = "keep"
	OnDeleteDrain = "drain"
)

// Who installs what the cluster needs.
const (
	ManifestsInstall  = "install"
	ManifestsExternal = "external"
)

// Which alarms are made.
const (
	AlarmsAll       = "all"
	AlarmsEssential = "essential"
	AlarmsNone      = "none"
)

// What is kept of passes that decided something.
const (
	DecisionLogOff   = "off"
	DecisionLogLines = "log"
	DecisionLogStore = "store"
)

// Constants that were settings once, or are Karpenter's options.
const (
	// BatchMax is the longest time that pods wait for others of their burst.
	BatchMax = 10 * time.Second
	// RefreshInterval is the time between look-ups of images, subnets, security groups, prices and statuses. A changed
	// EC2NodeClass or NodePool is looked at at once.
	RefreshInterval = 5 * time.Minute
)

// Values are the knobs a function runs with, parsed.
type Values struct {
	ClusterName             string
	ClusterEndpoint         string // https URL of the API server
	ClusterCABundle         string // base64 of the PEM
	ServiceCIDR             string // of IPv4 where there is one, else of IPv6
	CatalogBucket           string // empty outside the stack: use the built-in catalog
	ProvisionFunction       string // empty: nobody to wake
	LifecycleFunction       string // empty: nobody to wake
	RefreshFunction         string // empty: nobody to wake
	Rebalance               Rebalance
	RebalanceMinAge         time.Duration
	Disruption              Disruption
	PodEvictionCostUSD      float64
	DriftedPerCommand       int
	WatchDuration           time.Duration
	BatchIdle               time.Duration
	Trigger                 string // schedule, watch or push
	StackID                 string // ARN; empty: no request of CloudFormation is answered
	PushPath                string // empty: nobody is called
	NominatedPodsOnly       bool
	NodeRepair              bool
	VMMemoryOverheadPercent float64 // a fraction of the advertised memory: 0.075 is 7.5 %
	ReservedENIs            int
	MaxNodeClaimsPerPass    int
	MaxNodes                int     // of the cluster; 0 for no bound, as for the next two
	MaxNodesPerMinute       int     // of the cluster
	MaxUSDPerHour           float64 // of the cluster
	PerNodeOverheadUSD      float64 // per hour
	SpotToSpotConsolidation bool
	Commitments             float64 // part of the hourly Savings Plans that counts; 0: no commitment lowers prices
	PreferencePolicy        PreferencePolicy
	MinValuesPolicy         MinValuesPolicy
	Mode                    string   // act or observe
	Manifests               string   // install or external
	KarpenterNamespaces     []string // of a leader lease that keeps Joiner from acting
	ReservedCapacity        bool     // false: EC2 matches open reservations, selections are not read
	IsolatedVPC             bool
	ZonalShift              bool
	DryRunValidation        bool
	DecisionLog             string // off, log or store
	LogLevel                string // debug, info, warn or error
	RemoteWrite             RemoteWrite
}

// StackValues are the knobs that only the stack reads, parsed.
type StackValues struct {
	Architecture            string   // arm64 or x86_64, as Lambda names them
	NodeRole                string   // name of an existing role; empty: the stack makes KarpenterNodeRole-<cluster>
	ImageParameters         []string // names of SSM parameters, with *
	NodeRoles               []string // names, paths or ARNs of further roles that EC2NodeClasses may name
	NodePolicies            []string // names or ARNs of managed policies
	ProvisionStatements     []Statement
	WindowsNodes            bool   // the stack makes KarpenterNodeRole-<cluster>-windows
	WindowsNodeRole         string // name of an existing role for Windows nodes
	Deployment              string // another one in each deployment
	Tracing                 bool
	VPCID                   string
	SubnetIDs               []string
	SecurityGroupIDs        []string
	ClusterSecurityGroupID  string
	VPCEndpoints            []string // services: ec2, ssm, ...
	AlarmEmail              string
	PriceAlarmUSD           float64 // per hour; 0 for no alarm
	Dashboard               bool
	FunctionMemory          int // MiB, of the functions that run alone; Auto fits the nodes
	InterruptionHandling    bool
	InterruptionConcurrency int // invocations of spotinterruption; 0 reserves none, Auto is to be planned
	LogRetentionDays        int
	OnDelete                string // keep or drain
	TerminationProtection   bool
	HibernationSchedule     string // cron with or without CRON_TZ=, when all NodePools fall asleep; empty for never
	HibernationDuration     time.Duration
	Account                 string // number of the AWS account; empty: that of the credentials
	Region                  string // empty: that of the credentials
	NamePrefix              string // put before the names of what the stack makes
	RolePath                string // begins and ends with /
	PermissionsBoundary     string // ARN of a managed policy; empty: none
	KMSKey                  string // ARN of a key; empty: keys of AWS
	Tags                    []Pair // on everything that the stack makes
	Alarms                  string // all, essential or none
}

// Hibernation returns when the cluster falls asleep, in five fields of cron, and the IANA name of the time zone in
// which they are read. Both are empty for never.
func (v StackValues) Hibernation() (cron, timeZone string) {
	if v.HibernationSchedule == "" {
		return "", ""
	}
	timeZone, cron = splitTimeZone(v.HibernationSchedule)
	return cron, timeZone
}

// Pair is a key with a value.
type Pair struct{ Key, Value string }

// InvalidError lists every value that cannot be used.
type InvalidError struct {
	Problems []string // one sentence per setting, in the order of All
}

// Error is one line per problem, each naming the setting and what is allowed.
func (e *InvalidError) Error() string {
	return "settings: " + strings.Join(e.Problems, "\nsettings: ")
}

// settingBinding ties the description of a setting to the place its value goes. V is Values or StackValues.
type settingBinding[V any] struct {
	Setting
	set func(*V, string) bool // false for a text that is none of the values
}

// AllSettings returns every setting, in the order the documentation shows them.
func AllSettings() []Setting {
	return slices.Concat(lists.Of(functionKnobs(), func(k settingBinding[Values]) Setting { return k.Setting }),
		lists.Of(stackKnobs(), func(k settingBinding[StackValues]) Setting { return k.Setting }))
}

// FindSetting returns the setting with this context key.
func FindSetting(name string) (Setting, bool) {
	return lists.Find(AllSettings(), func(s Setting) bool { return s.Name == name })
}

// ParseSettings reads the knobs of a function. The lookup gets the name of an environment variable and returns "" for
// one that is not set; then the default holds. The error is an *InvalidError with every bad value, not the first.
func ParseSettings(lookup func(env string) string) (Values, error) {
	return parseValues(functionKnobs(), func(s Setting) string { return lookup(s.Env) })
}

// ParseStack reads the knobs that only the stack knows. The lookup gets a context key.
func ParseStack(lookup func(name string) string) (StackValues, error) {
	return parseValues(stackKnobs(), func(s Setting) string { return lookup(s.Name) })
}

func parseValues[V any](knobs []settingBinding[V], lookup func(Setting) string) (V, error) {
	var values V
	var bad InvalidError
	for _, k := range knobs {
		text := cmp.Or(strings.TrimSpace(lookup(k.Setting)), k.Default)
		if text == "" {
			if k.Required {
				bad.Problems = append(bad.Problems,
					fmt.Sprintf("%s is required; allowed: %s", k.problemLabel(), k.Allowed))
			}
			continue
		}
		if !k.set(&values, text) {
			bad.Problems = append(bad.Problems, fmt.Sprintf("%s is %q; allowed: %s", k.problemLabel(), text, k.Allowed))
		}
	}
	if len(bad.Problems) > 0 {
		return values, &bad
	}
	return values, nil
}

// problemLabel returns a problem's name of its setting: both names, since a reader knows one or the other.
func (s Setting) problemLabel() string {
	if s.Env == "" {
		return s.Name
	}
	return fmt.Sprintf("%s (%s)", s.Name, s.Env)
}
