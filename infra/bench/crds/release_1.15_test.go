//go:build !karpenter_1_14

package crds

// differences are the specs that fail with Joiner's CRDs on purpose, and why.
func differences() map[string]string {
	const core, aws = "sigs.k8s.io/karpenter/pkg/apis/v1: CEL/Validation ", "github.com/aws/karpenter-provider-aws/pkg/apis/v1: CEL/Validation "
	const kubelet = "fields of the kubelet that Joiner does not read are not passed through yet"
	return map[string]string{
		core + "Disruption should succeed when creating a budget with valid reasons should allow disruption reason Unhealthy": "budgets do not know the reason Unhealthy yet",
		aws + "should reject enclave options when enabled is omitted":                                                         "classes have no enclaveOptions yet",
		aws + "Kubelet should persist a field Karpenter has no Go representation for":                                         kubelet,
		aws + "Kubelet should admit a configuration the kubelet library rejects":                                              kubelet,
		aws + "Kubelet should preserve a nested subtree unaltered":                                                            kubelet,
	}
}

// otherMessagesOfRelease are how messages of this version begin that Joiner has no rule for, or words in its own way.
func otherMessagesOfRelease() []string { return nil }
