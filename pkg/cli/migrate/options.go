package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/findings"
	"joiner.sh/pkg/settings"
)

// Options holds what Karpenter was started with, by the names of its environment variables. An option that is missing
// has Karpenter's default.
type Options struct {
	Known  bool // a Deployment or Helm values were read
	Values map[string]string
	Unread []string // what could not be read, each with the reason
}

// SettingLine is a line for the context of cdk.json.
type SettingLine struct {
	Name  string `json:"name"`  // key of the context
	Value any    `json:"value"` // as JSON has it
	From  string `json:"from"`  // the option of Karpenter, or the field, that it is of
}

// counterpart is an option of Karpenter that Joiner has as a setting.
type counterpart struct {
	option, setting string
	standard        string // Karpenter's default
	parse           func(text string) (any, error)
}

// counterparts are the options with a setting of the same meaning. Feature gates are apart.
func counterparts() []counterpart {
	return []counterpart{
		{"RESERVED_ENIS", "reservedENIs", "0", parseNumber},
		{"VM_MEMORY_OVERHEAD_PERCENT", "vmMemoryOverheadPercent", "0.075", parseNumber},
		{"PREFERENCE_POLICY", "preferencePolicy", "Respect", parseWord},
		{"MIN_VALUES_POLICY", "minValuesPolicy", "Strict", parseWord},
		{"BATCH_IDLE_DURATION", "batchIdle", "1s", parseWord},
		{"ISOLATED_VPC", "isolatedVPC", "false", parseTruth},
		{"ENABLE_ZONAL_SHIFT", "zonalShift", "false", parseTruth},
		{"DISABLE_DRY_RUN", "dryRunValidation", "false", parseOpposite},
		{"CLUSTER_NAME", "clusterName", "", parseWord},
		{"CLUSTER_ENDPOINT", "clusterEndpoint", "", parseWord},
		{"CLUSTER_CA_BUNDLE", "clusterCABundle", "", parseWord},
		{"LOG_LEVEL", "logLevel", "info", parseWord},
	}
}

func parseWord(text string) (any, error) { return text, nil }

func parseTruth(text string) (any, error) { return strconv.ParseBool(text) }

func parseOpposite(text string) (any, error) {
	b, err := strconv.ParseBool(text)
	return !b, err
}

func parseNumber(text string) (any, error) {
	_, err := strconv.ParseFloat(text, 64)
	return json.Number(text), err
}

// optionsWithoutEffect are options that mean nothing to functions: ports, threads and the pod of the controller.
func optionsWithoutEffect() []string {
	return []string{"KUBERNETES_MIN_VERSION", "KARPENTER_SERVICE", "METRICS_PORT", "HEALTH_PROBE_PORT", "KUBE_CLIENT_QPS",
		"KUBE_CLIENT_BURST", "ENABLE_PROFILING", "DISABLE_CONTROLLER_WARMUP", "DISABLE_CLUSTER_STATE_OBSERVABILITY",
		"MEMORY_LIMIT", "CPU_REQUESTS", "LOG_OUTPUT_PATHS", "LOG_ERROR_OUTPUT_PATHS", "EKS_CONTROL_PLANE",
		"SYSTEM_NAMESPACE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_STS_REGIONAL_ENDPOINTS", "GOMAXPROCS", "GOMEMLIMIT"}
}

// Feature gates of Karpenter. All are closed without being asked for, but for ReservedCapacity.
const (
	gateSpotToSpot = "SpotToSpotConsolidation"
	gateNodeRepair = "NodeRepair"
	gateReserved   = "ReservedCapacity"
	gateStatic     = "StaticCapacity"
	gateOverlay    = "NodeOverlay"
	gateBuffer     = "CapacityBuffer"
	gateExpression = "NodeClassCEL" // one of AWS_FEATURE_GATES
)

// reportOptions turns Karpenter's options into lines for cdk.json, and says what has no line.
func (r *Report) reportOptions(f Facts) {
	o := f.Options
	for _, why := range o.Unread {
		r.Findings.Add(findings.Note, aboutOptions, why, "look it up, and compare with infra/settings.md")
	}
	if !o.Known {
		return
	}
	handled := optionsWithoutEffect()
	for _, c := range counterparts() {
		handled = append(handled, c.option)
		r.addCounterpart(c, o.Values[c.option])
	}
	handled = append(handled, r.reportGates(f)...)
	handled = append(handled, r.reportLeadership(f)...)
	handled = append(handled, r.reportInterruption(o)...)
	handled = append(handled, r.reportConstants(o)...)
	for _, name := range slices.Sorted(maps.Keys(o.Values)) {
		if value := o.Values[name]; value != "" && value != "false" && !slices.Contains(handled, name) {
			r.Findings.Add(findings.Note, aboutOptions, fmt.Sprintf("%s is %q, which Joiner has no setting for", name, value), "")
		}
	}
}

const aboutOptions = "Karpenter's options"

// addCounterpart adds the line of one option, unless it has Karpenter's default, which is Joiner's too.
func (r *Report) addCounterpart(c counterpart, text string) {
	if text == "" || text == c.standard {
		return
	}
	value, err := c.parse(text)
	if err == nil {
		variable := findSetting(c.setting).Env
		_, err = settings.ParseSettings(func(env string) string {
			switch env {
			case variable:
				return fmt.Sprint(value)
			case "CLUSTER_NAME":
				return "cluster"
			}
			return ""
		})
	}
	if err != nil {
		r.Findings.Add(findings.Note, aboutOptions, fmt.Sprintf("%s is %q, which %s cannot be: %v", c.option, text, c.setting, err),
			"choose a value for "+c.setting+" in cdk.json")
		return
	}
	r.Settings = append(r.Settings, SettingLine{Name: c.setting, Value: value, From: c.option})
}

// findSetting returns the setting of Joiner's with that name, which exists.
func findSetting(name string) settings.Setting {
	all := settings.AllSettings()
	return all[slices.IndexFunc(all, func(s settings.Setting) bool { return s.Name == name })]
}

// reportGates says what the feature gates mean for Joiner, which has none: a closed one is a setting, or something
// that begins to live.
func (r *Report) reportGates(f Facts) (handled []string) {
	open := map[string]bool{gateReserved: true}
	r.readGates(f.Options, "FEATURE_GATES", open)
	r.readGates(f.Options, "AWS_FEATURE_GATES", open)
	if !open[gateSpotToSpot] {
		r.Settings = append(r.Settings, SettingLine{Name: "spotToSpotConsolidation", Value: false, From: gateSpotToSpot})
	}
	if open[gateNodeRepair] {
		r.Settings = append(r.Settings, SettingLine{Name: "nodeRepair", Value: true, From: gateNodeRepair})
	}
	if !open[gateReserved] {
		r.Settings = append(r.Settings, SettingLine{Name: "reservedCapacity", Value: false, From: gateReserved})
	}
	for _, name := range slices.Sorted(maps.Keys(open)) {
		if known := []string{gateSpotToSpot, gateNodeRepair, gateReserved, gateStatic, gateOverlay, gateBuffer, gateExpression}; open[name] &&
			!slices.Contains(known, name) {
			r.Findings.Add(findings.Note, aboutOptions, "the gate "+name+" is open, which Joiner has no counterpart for", "")
		}
	}
	r.reportSleepers(f, open)
	return []string{"FEATURE_GATES", "AWS_FEATURE_GATES"}
}

// readGates notes which gates of an option are open.
func (r *Report) readGates(o Options, option string, open map[string]bool) {
	for part := range strings.SplitSeq(o.Values[option], ",") {
		name, value, found := strings.Cut(strings.TrimSpace(part), "=")
		if name == "" {
			continue
		}
		is, err := strconv.ParseBool(value)
		if !found || err != nil {
			r.Findings.Add(findings.Note, aboutOptions, fmt.Sprintf("%s holds %q, which is no NAME=true or NAME=false", option, part),
				"look it up, and compare with infra/settings.md")
			continue
		}
		open[name] = is
	}
}

// reportSleepers names what does nothing behind a closed gate and lives from the day on which Joiner acts.
func (r *Report) reportSleepers(f Facts, open map[string]bool) {
	for _, p := range f.Snapshot.Pools {
		if p.Static && p.Replicas > 0 && !open[gateStatic] {
			r.Findings.Add(findings.Note, "NodePool "+p.Name,
				fmt.Sprintf("the gate StaticCapacity is closed, so that its %d replicas do nothing; Joiner launches them", p.Replicas),
				"to keep it asleep: kubectl scale nodepool "+p.Name+" --replicas 0")
		}
	}
	for _, c := range f.Snapshot.Classes {
		if c.HasExpressions() && !open[gateExpression] {
			r.Findings.Add(findings.Note, "EC2NodeClass "+c.Name, "the gate NodeClassCEL is closed, so that its expressions keep it from being ready; Joiner evaluates them",
				"to keep it asleep: write numbers and quantities in its spec.kubelet, or delete it")
		}
	}
	for _, o := range f.Snapshot.Overlays {
		if !open[gateOverlay] {
			r.Findings.Add(findings.Note, "NodeOverlay "+o.Name, "the gate NodeOverlay is closed, so that it does nothing; Joiner applies it",
				"to keep it asleep: keep its manifest and kubectl delete nodeoverlay "+o.Name)
		}
	}
	for _, name := range f.Buffers {
		if !open[gateBuffer] {
			namespace, name, _ := strings.Cut(name, "/")
			r.Findings.Add(findings.Note, "CapacityBuffer "+namespace+"/"+name, "the gate CapacityBuffer is closed, so that it does nothing; Joiner keeps nodes for it",
				fmt.Sprintf("to keep it asleep: keep its manifest and kubectl -n %s delete capacitybuffer %s", namespace, name))
		}
	}
}

// reportLeadership says where Joiner has to look for the lease of the Karpenter that leads.
func (r *Report) reportLeadership(f Facts) (handled []string) {
	const lease = v1.KarpenterLeaderLease
	values := f.Options.Values
	if name := values["LEADER_ELECTION_NAME"]; name != "" && name != lease {
		r.Findings.Add(findings.Blocks, aboutOptions, fmt.Sprintf("its leader lease is named %s; Joiner looks for %s and would act beside it", name, lease),
			"leave LEADER_ELECTION_NAME out before Joiner is deployed, or deploy Joiner once Karpenter is scaled down")
	}
	if off, _ := strconv.ParseBool(values["DISABLE_LEADER_ELECTION"]); off {
		r.Findings.Add(findings.Blocks, aboutOptions, "DISABLE_LEADER_ELECTION is true: nobody can see that Karpenter works, and Joiner would act beside it",
			"scale Karpenter down before Joiner is deployed with mode act")
	}
	namespace := values["LEADER_ELECTION_NAMESPACE"]
	if namespace == "" && f.Karpenter != nil {
		namespace = f.Karpenter.Namespace
	}
	if usual := strings.Split(findSetting("karpenterNamespaces").Default, ","); namespace != "" && !slices.Contains(usual, namespace) {
		r.Settings = append(r.Settings, SettingLine{Name: "karpenterNamespaces",
			Value: strings.Join(append(usual, namespace), ","), From: "namespace of its leader lease"})
	}
	return []string{"LEADER_ELECTION_NAME", "LEADER_ELECTION_NAMESPACE", "DISABLE_LEADER_ELECTION"}
}

// reportInterruption says what changes about notices of EC2 and ResourceClaims.
func (r *Report) reportInterruption(o Options) []string {
	if queue := o.Values["INTERRUPTION_QUEUE"]; queue != "" {
		r.Findings.Add(findings.Note, aboutOptions, "notices of EC2 go through the queue "+queue+", which Joiner does not need",
			"once you are content: delete the queue and the EventBridge rules that fill it")
	} else {
		r.Findings.Add(findings.Note, aboutOptions, "INTERRUPTION_QUEUE is not set, so that Karpenter handles no notice of EC2; Joiner handles each",
			"a node termination handler has nothing to do any more: remove it with Karpenter, or both drain the node; with interruptionHandling false Joiner handles none either")
	}
	if ignored, err := strconv.ParseBool(o.Values["IGNORE_DRA_REQUESTS"]); err == nil && !ignored {
		r.Findings.Add(findings.Note, aboutOptions, "IGNORE_DRA_REQUESTS is false; Joiner launches no node for a ResourceClaim of a pod",
			"keep such pods on nodes that are there, or Karpenter for them")
	}
	return []string{"INTERRUPTION_QUEUE", "IGNORE_DRA_REQUESTS"}
}

// reportConstants says what cannot be changed here, of the options that ask for something else.
func (r *Report) reportConstants(o Options) []string {
	batchMax, refreshInterval := settings.BatchMax.String(), strings.TrimSuffix(settings.RefreshInterval.String(), "0s")
	constants := map[string]string{"BATCH_MAX_DURATION": batchMax, "AMI_REFRESH_INTERVAL": refreshInterval,
		"SUBNET_REFRESH_INTERVAL": refreshInterval, "SECURITY_GROUP_REFRESH_INTERVAL": refreshInterval}
	names := slices.Sorted(maps.Keys(constants))
	for _, name := range names {
		if value := o.Values[name]; value != "" && value != constants[name] {
			r.Findings.Add(findings.Note, aboutOptions, fmt.Sprintf("%s is %s; Joiner's is always %s", name, value, constants[name]), "")
		}
	}
	return names
}
