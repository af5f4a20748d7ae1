//go:build !karpenter_1_14

package crds

// differences are the specs that fail with Joiner's CRDs on purpose, and why.
func differences() map[string]string {
	const aws = "github.com/aws/karpenter-provider-aws/pkg/apis/v1: CEL/Validation "
	return map[string]string{
		aws + "should reject enclave options when enabled is omitted":            "classes have no enclaveOptions yet",
		aws + "Kubelet should admit a configuration the kubelet library rejects": "fields of the kubelet that Joiner reads have their type checked when they are written",
	}
}

// otherMessagesOfRelease are how messages of this version begin that Joiner has no rule for, or words in its own way.
func otherMessagesOfRelease() []string { return nil }
