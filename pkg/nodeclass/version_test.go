package nodeclass_test

import (
	"fmt"
	"strings"
	"testing"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/nodeclass"
)

func TestUnsupported(t *testing.T) {
	const range126 = " is not within 1.26 to 1.37, which this version of Joiner is made for"
	for version, want := range map[string]string{
		"1.25": "Kubernetes 1.25" + range126, "1.26": "", "1.30+": "", "1.37": "", "1.38": "Kubernetes 1.38" + range126,
		"new": `read Kubernetes version "new": it is not of the form 1.36`,
	} {
		if got := nodeclass.UnsupportedReason(version); got != want {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
}

func TestKubeletVersions(t *testing.T) {
	for name, want := range map[string]string{
		"amazon-eks-node-al2023-x86_64-standard-1.36-v20261101":          "[1.36]",
		"amazon-eks-arm64-node-1.32-v20250101":                           "[1.32]",
		"bottlerocket-aws-k8s-1.35-nvidia-x86_64-v1.31.0-0a1b2c":         "[1.35]",
		"Windows_Server-2022-English-Core-EKS_Optimized-1.34-2026.01.01": "[1.34]",
		"my-image-1.36-7": "[]",
		"amazon-eks-":     "[]",
	} {
		if got := fmt.Sprint(nodeclass.KubeletVersions([]awsv1.AMI{{Name: name}, {Name: name}})); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestKubeletMisfit(t *testing.T) {
	for pair, want := range map[string]string{
		"1.36 1.36": "", "1.33 1.36": "", "1.36 ": "", "latest 1.36": "",
		"1.32 1.36": "it has a kubelet of 1.32, which is more than 3 versions older than the cluster's 1.36",
		"1.36 1.35": "it has a kubelet of 1.36, which is newer than the cluster's 1.35",
	} {
		kubelet, server, _ := strings.Cut(pair, " ")
		if got := nodeclass.KubeletMisfit(kubelet, server); got != want {
			t.Errorf("%s: %q, want %q", pair, got, want)
		}
	}
}
