//go:build karpenter_1_14

package crds

// differences are the specs that fail with Joiner's CRDs on purpose, and why.
func differences() map[string]string {
	return map[string]string{}
}

// otherMessagesOfRelease are how messages of this version begin that Joiner has no rule for, or words in its own way.
func otherMessagesOfRelease() []string { return nil }
