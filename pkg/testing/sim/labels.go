package sim

const (
	labelZone     = "topology.kubernetes.io/zone"
	labelHost     = "kubernetes.io/hostname"
	labelCapacity = "karpenter.sh/capacity-type"
	labelType     = "node.kubernetes.io/instance-type"
	teamTaint     = "team"
)
