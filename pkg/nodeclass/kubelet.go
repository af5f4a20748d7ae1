package nodeclass

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/kubeletexpr"
)

// kubeletFields are the fields of the kubelet's configuration in Kubernetes 1.37.
const kubeletFields = `
	address allowedUnsafeSysctls authentication authorization cgroupDriver cgroupRoot cgroupsPerQOS clusterDNS
	clusterDomain configMapAndSecretChangeDetectionStrategy containerLogMaxFiles containerLogMaxSize
	containerLogMaxWorkers containerLogMonitorInterval containerRuntimeEndpoint contentType cpuCFSQuota
	cpuCFSQuotaPeriod cpuManagerPolicy cpuManagerPolicyOptions cpuManagerReconcilePeriod crashLoopBackOff
	defaultPodSysctls
	enableContentionProfiling enableControllerAttachDetach enableDebugFlagsHandler enableDebuggingHandlers
	enableProfilingHandler enableServer enableSystemLogHandler enableSystemLogQuery enforceNodeAllocatable
	eventBurst eventRecordQPS evictionHard evictionMaxPodGracePeriod evictionMinimumReclaim
	evictionPressureTransitionPeriod evictionSoft evictionSoftGracePeriod failCgroupV1 failSwapOn featureGates
	fileCheckFrequency hairpinMode healthzBindAddress healthzPort httpCheckFrequency
	imageGCHighThresholdPercent imageGCLowThresholdPercent imageMaximumGCAge imageMinimumGCAge
	imagePullCredentialsVerificationPolicy imageServiceEndpoint iptablesDropBit iptablesMasqueradeBit
	kernelMemcgNotification kubeAPIBurst kubeAPIQPS kubeReserved kubeReservedCgroup kubeletCgroups
	localStorageCapacityIsolation logging makeIPTablesUtilChains maxOpenFiles maxParallelImagePulls maxPods
	memoryManagerPolicy memoryReservationPolicy memorySwap memoryThrottlingFactor mergeDefaultEvictionSettings
	nodeLeaseDurationSeconds nodeStatusMaxImages nodeStatusReportFrequency nodeStatusUpdateFrequency
	oomScoreAdj podCIDR podLogsDir podPidsLimit podsPerCore port preloadedImagesVerificationAllowlist
	protectKernelDefaults providerID qosReserved readOnlyPort registerNode registerWithTaints registryBurst
	registryPullQPS reservedMemory reservedSystemCPUs resolvConf rotateCertificates runOnce
	runtimeRequestTimeout seccompDefault serializeImagePulls serverTLSBootstrap showHiddenMetricsForVersion
	shutdownGracePeriod shutdownGracePeriodByPodPriority shutdownGracePeriodCriticalPods singleProcessOOMKill
	staticPodPath staticPodURL staticPodURLHeader streamingConnectionIdleTimeout syncFrequency systemCgroups
	systemReserved systemReservedCgroup tlsCertFile tlsCipherSuites tlsCurvePreferences tlsMinVersion
	tlsPrivateKeyFile topologyManagerPolicy topologyManagerPolicyOptions topologyManagerScope tracing
	userNamespaces volumePluginDir volumeStatsAggPeriod
`

// KubeletFields are the names of the fields of the kubelet's configuration, sorted.
func KubeletFields() []string { return strings.Fields(kubeletFields) }

// KubeletProblem returns why nodes of the class would not run with the spec.kubelet that was written, with its reason;
// both empty for nothing. Of the fields that Joiner does not read, it knows the names: a kubelet that does not know one
// does not start. Families but AL2023 cannot take them, and Custom leaves the kubelet to its user.
func KubeletProblem(c *awsv1.EC2NodeClass) (reason, message string) {
	if c.Spec.Kubelet == nil {
		return "", ""
	}
	if problem := expressionProblem(c.Spec.Kubelet); problem != "" {
		return awsv1.ReasonKubeletExpression, problem
	}
	extra := slices.Sorted(maps.Keys(c.Spec.Kubelet.Extra))
	if c.Spec.Kubelet.MaxPodsExpression() != "" {
		extra = slices.DeleteFunc(extra, func(name string) bool { return name == awsv1.KubeletMaxPods })
	}
	for _, name := range extra {
		switch {
		case name == awsv1.KubeletTaints:
			return awsv1.ReasonInvalidKubelet, "spec.kubelet." + name +
				" cannot be set: write spec.template.spec.taints of the NodePool"
		case !slices.Contains(KubeletFields(), name):
			return awsv1.ReasonInvalidKubelet, "spec.kubelet." + name + ": the kubelet has no such field" + likeField(name)
		}
	}
	family := c.ResolvedAMIFamily()
	if len(extra) > 0 && family != awsv1.AMIFamilyAL2023 && family != awsv1.AMIFamilyCustom {
		return awsv1.ReasonUnsupportedKubelet, fmt.Sprintf("spec.kubelet has fields that nodes of %s cannot be given: %s; "+
			"remove them, or take AL2023", family, strings.Join(extra, ", "))
	}
	return "", ""
}

// expressionProblem returns why an expression of the settings cannot be evaluated for any instance type, or "". A text
// where Kubernetes wants a number or a quantity is one, as Karpenter's gate NodeClassCEL allows.
func expressionProblem(k *awsv1.KubeletConfiguration) string {
	if text := k.MaxPodsExpression(); text != "" {
		if _, err := kubeletexpr.Compile(text); err != nil {
			return "spec.kubelet.maxPods: " + err.Error()
		}
	}
	for _, m := range []struct {
		name   string
		values map[string]string
	}{{"kubeReserved", k.KubeReserved}, {"systemReserved", k.SystemReserved}} {
		for _, key := range slices.Sorted(maps.Keys(m.values)) {
			if instancetypes.IsQuantity(m.values[key]) {
				continue
			}
			if _, err := kubeletexpr.Compile(m.values[key]); err != nil {
				return "spec.kubelet." + m.name + "." + key + ": " + err.Error()
			}
		}
	}
	return ""
}

// likeField names the field that is written like this one but for its case.
func likeField(name string) string {
	for _, field := range KubeletFields() {
		if strings.EqualFold(field, name) {
			return "; did you mean " + field + "?"
		}
	}
	return ""
}
