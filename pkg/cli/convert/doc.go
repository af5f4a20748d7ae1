// Package convert makes today's NodePools and EC2NodeClasses of the manifests that people wrote for older Karpenters.
//
// It knows Provisioner (karpenter.sh/v1alpha5, with an inline provider or a providerRef), AWSNodeTemplate
// (karpenter.k8s.aws/v1alpha1), and NodePool and EC2NodeClass v1beta1, with the defaults that those versions had: what
// was silently so is written out. It warns of each thing that has no equivalent, and refuses to know a cluster or an
// account. Other objects come out as they went in.
package convert
