//go:build karpenter_1_14

package provider

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	peerv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
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
func optionsWithoutSetting() []string { return nil }

// A full reservation is not available.
const fullIsAvailable = false

// A minValues counts the values of the types that the requirement forbids as well.
const countsForbiddenValues = true

// A capacity block that cannot be had may end a launch in a panic.
const blocksPanic = true

// launchableFilter is the first of those that a launch applies.
func launchableFilter(r scheduling.Requirements, requests corev1.ResourceList) filter.Filter {
	return filter.CompatibleAvailableFilter(r, requests)
}

// typeResolver says how a class sees instance types.
func typeResolver(region string, n *peerv1.EC2NodeClass) (resolveType, error) {
	r := instancetype.NewDefaultResolver(region)
	return func(ctx context.Context, info types.InstanceTypeInfo, zones []string) (*cloudprovider.InstanceType, error) {
		return r.Resolve(ctx, info, zones, n), nil
	}, nil
}

// capacityCodesOfLater are those that a later version takes for missing capacity, as Joiner does.
const capacityCodesOfLater = "InvalidCapacityReservationState.Unavailable SpotMaxPriceTooLow"

// differencesOfRelease are those of instance types.
func differencesOfRelease() []difference {
	return []difference{{"Karpenter 1.14 does not know that i4i.large has branch interfaces", func(_ world, name, what, theirs, ours string) bool {
		return name == "i4i.large" && strings.HasSuffix(what, "pod-eni") && theirs == "0" && ours == "9"
	}}}
}

// followLater puts into a template what a later version has there, as Joiner does: a larger root volume of
// Bottlerocket.
func followLater(family string, d *types.RequestLaunchTemplateData) {
	if size := d.BlockDeviceMappings; family == "Bottlerocket" && *size[0].Ebs.VolumeSize == 4 {
		size[0].Ebs.VolumeSize = aws.Int32(6)
	}
}

// imageResolver makes what launch templates hold.
func imageResolver(region string) (amifamily.Resolver, error) {
	return amifamily.NewDefaultResolver(region), nil
}

// bootstrapOptions are those of a node with these kubelet settings as YAML.
func bootstrapOptions(kubelet string) (bootstrap.Options, error) {
	k := &peerv1.KubeletConfiguration{}
	err := yaml.UnmarshalStrict([]byte(kubelet), k)
	return bootstrap.Options{KubeletConfig: k}, err
}

func settingsOfRelease([]corev1.Taint) map[string]setting { return nil }

// worldsOfRelease are those that no other version knows.
func worldsOfRelease() []world { return nil }
