//go:build !karpenter_1_14

package provider

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	peerv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/karpenter-provider-aws/pkg/cel"
	peeroptions "github.com/aws/karpenter-provider-aws/pkg/operator/options"
	"github.com/aws/karpenter-provider-aws/pkg/providers/amifamily"
	"github.com/aws/karpenter-provider-aws/pkg/providers/amifamily/bootstrap"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instance/filter"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instancetype"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/yaml"
)

// optionsWithoutSetting are those of this version that mean nothing to Joiner and are told of.
func optionsWithoutSetting() []string {
	return []string{"LEGACY_NODE_REPAIR", "SCHEDULER_CONFIG"}
}

// A full reservation is available, and cannot be launched into.
const fullIsAvailable = true

// A minValues counts the values that the requirement allows.
const countsForbiddenValues = false

// A capacity block that cannot be had is passed over.
const blocksPanic = false

// launchableFilter is the first of those that a launch applies.
func launchableFilter(r scheduling.Requirements, requests corev1.ResourceList) filter.Filter {
	return filter.CompatibleLaunchableFilter(r, requests)
}

// typeResolver says how a class sees instance types, with the gate NodeClassCEL on.
func typeResolver(region string, n *peerv1.EC2NodeClass) (resolveType, error) {
	kubelet, err := peerv1.ParseKubeletConfig(n.Spec.Kubelet)
	if err != nil {
		return nil, err
	}
	expressions, err := cel.NewEnvironment()
	r := instancetype.NewDefaultResolver(region, expressions)
	return func(ctx context.Context, info types.InstanceTypeInfo, zones []string) (*cloudprovider.InstanceType, error) {
		o := *peeroptions.FromContext(ctx)
		o.FeatureGates.NodeClassCEL = true
		return r.Resolve(peeroptions.ToContext(ctx, &o), info, zones, n, kubelet)
	}, err
}

// worldsOfRelease have expressions among the kubelet's settings.
func worldsOfRelease() (all []world) {
	for name, text := range map[string]string{
		"maxPods by the type":       "maxPods: \"instance_type.startsWith('m5.') ? 58 : max_pods / 2\"",
		"maxPods by interfaces":     "maxPods: 'min(110, default_enis * (ips_per_eni - 1) + 2)', podsPerCore: 20",
		"reserved by expressions":   "kubeReserved: {cpu: 'max(60, vcpus * 33)', memory: '255 + 11 * max_pods', pid: 'max_pods * 100'}, systemReserved: {ephemeral-storage: 'vcpus / 2', memory: 100Mi}",
		"reserved by maxPods":       "maxPods: 'vcpus * 4', kubeReserved: {memory: 'max_pods * 11 + 0'}, systemReserved: {cpu: 'double(memory_mib) * 0.003'}",
		"reserved of other maxPods": "maxPods: 17, podsPerCore: 4, kubeReserved: {memory: 'max_pods * 11'}",
	} {
		for _, family := range []string{"AL2", "AL2023", "Bottlerocket", "Windows2022"} {
			all = append(all, world{name: name + " on " + family, spec: "amiFamily: " + family + "\nkubelet: {" + text + "}"})
		}
	}
	return all
}

// capacityCodesOfLater are those that a later version takes for missing capacity, as Joiner does.
const capacityCodesOfLater = ""

// differencesOfRelease are those of instance types.
func differencesOfRelease() []difference { return nil }

// followLater puts into a template what a later version has there, as Joiner does.
func followLater(string, *types.RequestLaunchTemplateData) {}

// imageResolver makes what launch templates hold.
func imageResolver(region string) (amifamily.Resolver, error) {
	expressions, err := cel.NewEnvironment()
	return amifamily.NewDefaultResolver(region, nil, expressions), err
}

// bootstrapOptions are those of a node with these kubelet settings as YAML.
func bootstrapOptions(kubelet string) (bootstrap.Options, error) {
	o := bootstrap.Options{}
	if err := yaml.UnmarshalStrict([]byte(kubelet), &o.UnparsedKubeletConfig); err != nil {
		return o, err
	}
	var err error
	o.KubeletConfig, err = peerv1.ParseKubeletConfig(o.UnparsedKubeletConfig)
	return o, err
}

// settingsOfRelease are fields of the kubelet that neither side reads.
func settingsOfRelease(taints []corev1.Taint) map[string]setting {
	return map[string]setting{"other fields of the kubelet": {taints: taints, kubelet: `{maxPods: 29, clusterDNS: [172.20.0.10], serializeImagePulls: false,
  logging: {format: json, options: {json: {infoBufferSize: 100Mi, splitStream: true}}}, podPidsLimit: 4096, featureGates: {A: true}}`}}
}
