package bootstrap

import (
	"fmt"
	"strings"
)

// kubeletArgs is the command line of the kubelet as the families without a configuration file get it, in a fixed order.
func kubeletArgs(in Input) string {
	k := in.Kubelet
	args := []string{fmt.Sprintf(`--node-labels="%s"`, joinPairs(in.nodeLabels(), "="))}
	if len(in.Taints) > 0 {
		taints := make([]string, len(in.Taints))
		for i, t := range in.Taints {
			taints[i] = t.Key + ":" + t.Effect
			if t.Value != "" {
				taints[i] = t.Key + "=" + t.Value + ":" + t.Effect
			}
		}
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
