package bootstrap

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

// kubeletAmount matches an amount or a threshold of the kubelet's configuration, and the name of one.
const kubeletAmount = `^[0-9A-Za-z.+%-]+$`

// checkKubelet refuses what would be another setting, or another line, in a family whose kubelet is told by flags. A
// class whose family is Custom says it all itself.
func checkKubelet(in Input) error {
	if in.Family == awsv1.AMIFamilyCustom {
		return nil
	}
	address := regexp.MustCompile(`^[0-9A-Fa-f.:]+$`)
	for i, dns := range in.Kubelet.ClusterDNS {
		if !address.MatchString(dns) {
			return malformedError("spec.kubelet.clusterDNS[%d] is no IP address: %.80q", i, dns)
		}
	}
	amount := regexp.MustCompile(kubeletAmount)
	k := in.Kubelet
	for _, m := range []struct {
		field  string
		values map[string]string
	}{
		{"systemReserved", k.SystemReserved}, {"kubeReserved", k.KubeReserved}, {"evictionHard", k.EvictionHard},
		{"evictionSoft", k.EvictionSoft}, {"evictionSoftGracePeriod", gracePeriods(in)},
	} {
		for _, name := range slices.Sorted(maps.Keys(m.values)) {
			if !amount.MatchString(name) {
				return malformedError("spec.kubelet.%s has a key that the kubelet does not know: %.80q", m.field, name)
			}
			if v := m.values[name]; !amount.MatchString(v) && m.field != "evictionSoftGracePeriod" {
				return malformedError("spec.kubelet.%s.%s is no amount: %.80q", m.field, name, v)
			}
		}
	}
	return nil
}

// kubeletArgs is the command line of the kubelet as the families without a configuration file get it, in a fixed order.
func kubeletArgs(in Input) string {
	k := in.Kubelet
	args := []string{fmt.Sprintf(`--node-labels="%s"`, joinPairs(in.Node.nodeLabels(), "="))}
	if len(in.Node.taints) > 0 {
		taints := lists.Of(in.Node.taints, cluster.Taint.String)
		args = append(args, fmt.Sprintf(`--register-with-taints="%s"`, strings.Join(taints, ",")))
	}
	args = append(args, fmt.Sprintf("--max-pods=%d", in.maxPods()))
	args = appendNumber(args, "--pods-per-core", k.PodsPerCore)
	args = appendMap(args, "--system-reserved", "=", k.SystemReserved)
	args = appendMap(args, "--kube-reserved", "=", k.KubeReserved)
	args = appendMap(args, "--eviction-hard", "<", k.EvictionHard)
	args = appendMap(args, "--eviction-soft", "<", k.EvictionSoft)
	args = appendMap(args, "--eviction-soft-grace-period", "=", gracePeriods(in))
	args = appendNumber(args, "--eviction-max-pod-grace-period", k.EvictionMaxPodGracePeriod)
	args = appendNumber(args, "--image-gc-high-threshold", k.ImageGCHighThresholdPercent)
	args = appendNumber(args, "--image-gc-low-threshold", k.ImageGCLowThresholdPercent)
	if k.CPUCFSQuota != nil {
		args = append(args, fmt.Sprintf("--cpu-cfs-quota=%t", *k.CPUCFSQuota))
	}
	return strings.Join(args, " ")
}

func appendNumber(args []string, flag string, n *int32) []string {
	if n == nil {
		return args
	}
	return append(args, fmt.Sprintf("%s=%d", flag, *n))
}

func appendMap(args []string, flag, sep string, m map[string]string) []string {
	if len(m) == 0 {
		return args
	}
	return append(args, fmt.Sprintf(`%s="%s"`, flag, joinPairs(m, sep)))
}

// gracePeriods are the grace periods of soft evictions as Go durations.
func gracePeriods(in Input) map[string]string {
	out := make(map[string]string, len(in.Kubelet.EvictionSoftGracePeriod))
	for k, d := range in.Kubelet.EvictionSoftGracePeriod {
		out[k] = d.Duration.String()
	}
	return out
}
