package nodeclass

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/instancetypes"
)

// Parameter is an SSM parameter that holds the id of an image, with what an instance type must be to boot it besides
// having its architecture. One parameter may stand for several kinds of types.
type Parameter struct {
	Path     string                             // its name in SSM
	Variants [][]corev1.NodeSelectorRequirement // a type meets all that one of them says
}

// AliasError says that an alias does not go with the cluster's version.
type AliasError struct{ Why string }

// Error is the reason.
func (e *AliasError) Error() string { return e.Why }

// ImageParameters are the SSM parameters of an alias for a Kubernetes version such as 1.36. The error is an
// *AliasError when there are no such images for that version.
func ImageParameters(a awsv1.Alias, version string) ([]Parameter, error) {
	minor, err := minorOf(version)
	if err != nil {
		return nil, err
	}
	switch {
	case a.Family == awsv1.AMIFamilyAL2 && minor >= 33:
		return nil, &AliasError{fmt.Sprintf("there are no AL2 images for Kubernetes %s: use the alias al2023@latest",
			version)}
	case a.Family == awsv1.AMIFamilyWindows2025 && minor < 35:
		return nil, &AliasError{fmt.Sprintf("there are no Windows 2025 images for Kubernetes %s: they start with 1.35",
			version)}
	}
	switch a.Family {
	case awsv1.AMIFamilyAL2:
		return al2(a, version), nil
	case awsv1.AMIFamilyAL2023:
		return al2023(a, version), nil
	case awsv1.AMIFamilyBottlerocket:
		return bottlerocketParameters(a, version), nil
	}
	return windowsParameters(a.Family, version), nil
}

func al2(a awsv1.Alias, version string) []Parameter {
	path := func(kind, image string) string {
		leaf := "recommended"
		if a.Version != awsv1.AliasVersionLatest {
			leaf = image + "-" + version + "-" + a.Version
		}
		return fmt.Sprintf("/aws/service/eks/optimized-ami/%s/%s/%s/image_id", version, kind, leaf)
	}
	return []Parameter{
		{path("amazon-linux-2", "amazon-eks-node"), listVariants(standardRequirements())},
		{path("amazon-linux-2-arm64", "amazon-eks-arm64-node"), listVariants(standardRequirements())},
		{path("amazon-linux-2-gpu", "amazon-eks-gpu-node"), listVariants(neuronRequirements(), nvidiaRequirements())},
	}
}

func al2023(a awsv1.Alias, version string) []Parameter {
	var out []Parameter
	for _, v := range []struct {
		arch, variant string
		needs         []corev1.NodeSelectorRequirement
	}{
		{"x86_64", "standard", standardRequirements()}, {"x86_64", "nvidia", nvidiaRequirements()},
		{"x86_64", "neuron", neuronRequirements()},
		{"arm64", "standard", standardRequirements()}, {"arm64", "nvidia", nvidiaRequirements()},
	} {
		leaf := "recommended"
		if a.Version != awsv1.AliasVersionLatest {
			leaf = fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", v.arch, v.variant, version, a.Version)
		}
		out = append(out, Parameter{fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/%s/image_id",
			version, v.arch, v.variant, leaf), listVariants(v.needs)})
	}
	return out
}

func bottlerocketParameters(a awsv1.Alias, version string) []Parameter {
	path := func(kind, arch string) string {
		return fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/%s/image_id", version, kind, arch,
			strings.TrimPrefix(a.Version, "v"))
	}
	return []Parameter{
		{path("", "x86_64"), listVariants(standardRequirements(), neuronRequirements())},
		{path("", "arm64"), listVariants(standardRequirements())},
		{path("-nvidia", "x86_64"), listVariants(nvidiaRequirements())},
		{path("-nvidia", "arm64"), listVariants(nvidiaRequirements())},
	}
}

func windowsParameters(family, version string) []Parameter {
	build := instancetypes.WindowsBuild(family)
	return []Parameter{{
		Path: fmt.Sprintf("/aws/service/ami-windows-latest/Windows_Server-%s-English-Core-EKS_Optimized-%s/image_id",
			strings.TrimPrefix(family, "Windows"), version),
		Variants: listVariants([]corev1.NodeSelectorRequirement{
			{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"windows"}},
			{Key: corev1.LabelWindowsBuild, Operator: corev1.NodeSelectorOpIn, Values: []string{build}},
		}),
	}}
}

func listVariants(v ...[]corev1.NodeSelectorRequirement) [][]corev1.NodeSelectorRequirement { return v }

func standardRequirements() []corev1.NodeSelectorRequirement {
	return []corev1.NodeSelectorRequirement{
		{Key: instancetypes.LabelAccelCount, Operator: corev1.NodeSelectorOpDoesNotExist},
		{Key: instancetypes.LabelGPUCount, Operator: corev1.NodeSelectorOpDoesNotExist},
	}
}

func nvidiaRequirements() []corev1.NodeSelectorRequirement {
	return []corev1.NodeSelectorRequirement{{Key: instancetypes.LabelGPUCount, Operator: corev1.NodeSelectorOpExists}}
}

func neuronRequirements() []corev1.NodeSelectorRequirement {
	return []corev1.NodeSelectorRequirement{{Key: instancetypes.LabelAccelCount,
		Operator: corev1.NodeSelectorOpExists}}
}

func minorOf(version string) (int, error) {
	_, minor, ok := strings.Cut(version, ".")
	n, err := strconv.Atoi(strings.TrimSuffix(minor, "+"))
	if !ok || err != nil {
		return 0, fmt.Errorf("read Kubernetes version %q: it is not of the form 1.36", version)
	}
	return n, nil
}
