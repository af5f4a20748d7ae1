package nodeclass_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/nodeclass"
)

// text prints requirements without the prefix of their keys.
func text(needs []corev1.NodeSelectorRequirement) string {
	var out []string
	for _, n := range needs {
		s := n.Key[strings.LastIndexByte(n.Key, '/')+1:] + " " + string(n.Operator)
		if len(n.Values) > 0 {
			s += " " + strings.Join(n.Values, ",")
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func TestParametersOfAliases(t *testing.T) {
	const (
		standard = "instance-accelerator-count DoesNotExist, instance-gpu-count DoesNotExist"
		nvidia   = "instance-gpu-count Exists"
		neuron   = "instance-accelerator-count Exists"
		eks      = "/aws/service/eks/optimized-ami/"
		bottle   = "/aws/service/bottlerocket/aws-k8s-1.36"
		windows  = "/aws/service/ami-windows-latest/Windows_Server-"
	)
	for _, test := range []struct {
		alias, version string
		want           []string
	}{
		{"al2023@latest", "1.36", []string{
			eks + "1.36/amazon-linux-2023/x86_64/standard/recommended/image_id: " + standard,
			eks + "1.36/amazon-linux-2023/x86_64/nvidia/recommended/image_id: " + nvidia,
			eks + "1.36/amazon-linux-2023/x86_64/neuron/recommended/image_id: " + neuron,
			eks + "1.36/amazon-linux-2023/arm64/standard/recommended/image_id: " + standard,
			eks + "1.36/amazon-linux-2023/arm64/nvidia/recommended/image_id: " + nvidia,
		}},
		{"al2023@v20261012", "1.36", []string{
			eks + "1.36/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.36-v20261012/image_id: " + standard,
			eks + "1.36/amazon-linux-2023/x86_64/nvidia/amazon-eks-node-al2023-x86_64-nvidia-1.36-v20261012/image_id: " + nvidia,
			eks + "1.36/amazon-linux-2023/x86_64/neuron/amazon-eks-node-al2023-x86_64-neuron-1.36-v20261012/image_id: " + neuron,
			eks + "1.36/amazon-linux-2023/arm64/standard/amazon-eks-node-al2023-arm64-standard-1.36-v20261012/image_id: " + standard,
			eks + "1.36/amazon-linux-2023/arm64/nvidia/amazon-eks-node-al2023-arm64-nvidia-1.36-v20261012/image_id: " + nvidia,
		}},
		{"al2@latest", "1.32", []string{
			eks + "1.32/amazon-linux-2/recommended/image_id: " + standard,
			eks + "1.32/amazon-linux-2-arm64/recommended/image_id: " + standard,
			eks + "1.32/amazon-linux-2-gpu/recommended/image_id: " + neuron + " | " + nvidia,
		}},
		{"al2@v20250101", "1.32", []string{
			eks + "1.32/amazon-linux-2/amazon-eks-node-1.32-v20250101/image_id: " + standard,
			eks + "1.32/amazon-linux-2-arm64/amazon-eks-arm64-node-1.32-v20250101/image_id: " + standard,
			eks + "1.32/amazon-linux-2-gpu/amazon-eks-gpu-node-1.32-v20250101/image_id: " + neuron + " | " + nvidia,
		}},
		{"bottlerocket@latest", "1.36", []string{
			bottle + "/x86_64/latest/image_id: " + standard + " | " + neuron,
			bottle + "/arm64/latest/image_id: " + standard,
			bottle + "-nvidia/x86_64/latest/image_id: " + nvidia,
			bottle + "-nvidia/arm64/latest/image_id: " + nvidia,
		}},
		{"bottlerocket@v1.45.0", "1.36", []string{
			bottle + "/x86_64/1.45.0/image_id: " + standard + " | " + neuron,
			bottle + "/arm64/1.45.0/image_id: " + standard,
			bottle + "-nvidia/x86_64/1.45.0/image_id: " + nvidia,
			bottle + "-nvidia/arm64/1.45.0/image_id: " + nvidia,
		}},
		{"windows2019@latest", "1.36", []string{windows + "2019-English-Core-EKS_Optimized-1.36/image_id: os In windows, windows-build In 10.0.17763"}},
		{"windows2022@latest", "1.36", []string{windows + "2022-English-Core-EKS_Optimized-1.36/image_id: os In windows, windows-build In 10.0.20348"}},
		{"windows2025@latest", "1.36", []string{windows + "2025-English-Core-EKS_Optimized-1.36/image_id: os In windows, windows-build In 10.0.26100"}},
	} {
		t.Run(test.alias, func(t *testing.T) {
			alias, ok := awsv1.ParseAlias(test.alias)
			if !ok {
				t.Fatal("no alias")
			}
			parameters, err := nodeclass.ImageParameters(alias, test.version)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range parameters {
				var variants []string
				for _, v := range p.Variants {
					variants = append(variants, text(v))
				}
				got = append(got, fmt.Sprintf("%s: %s", p.Path, strings.Join(variants, " | ")))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAliasesThatDoNotGoWithTheVersion(t *testing.T) {
	for _, test := range []struct{ alias, version, want string }{
		{"al2@latest", "1.33", "there are no AL2 images for Kubernetes 1.33: use the alias al2023@latest"},
		{"al2@v20250101", "1.36", "there are no AL2 images for Kubernetes 1.36: use the alias al2023@latest"},
		{"windows2025@latest", "1.34", "there are no Windows 2025 images for Kubernetes 1.34: they start with 1.35"},
	} {
		alias, _ := awsv1.ParseAlias(test.alias)
		_, err := nodeclass.ImageParameters(alias, test.version)
		if refused, ok := errors.AsType[*nodeclass.AliasError](err); !ok || refused.Why != test.want {
			t.Errorf("%s on %s: error %v, want %s", test.alias, test.version, err, test.want)
		}
	}
	for _, version := range []string{"", "1", "1.x", "v"} {
		_, err := nodeclass.ImageParameters(awsv1.Alias{Family: awsv1.AMIFamilyAL2023, Version: "latest"}, version)
		if _, ok := errors.AsType[*nodeclass.AliasError](err); err == nil || ok {
			t.Errorf("version %q: error %v, want one that is no status", version, err)
		}
	}
	if _, err := nodeclass.ImageParameters(awsv1.Alias{Family: awsv1.AMIFamilyWindows2025, Version: "latest"}, "1.35"); err != nil {
		t.Error(err)
	}
}
