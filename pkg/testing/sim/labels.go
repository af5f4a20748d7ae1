package sim

const (
	labelZone     = "topology.kubernetes.io/zone"
	labelHost     = "kubernetes.io/hostname"
	labelCapacity = "karpenter.sh/capacity-type"
	teamTaint     = "team"
)
