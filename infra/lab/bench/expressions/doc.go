// Package expressions holds what expressions of the kubelet come to against Karpenter 1.15. It has tests only.
package expressions
