package instancetypes

// Labels of nodes whose values an instance type, its zone or its way of sale decides.
const (
	LabelType          = "node.kubernetes.io/instance-type"
	LabelArch          = "kubernetes.io/arch"
	LabelOS            = "kubernetes.io/os"
	LabelZone          = "topology.kubernetes.io/zone"
	LabelZoneID        = "topology.k8s.aws/zone-id"
	LabelRegion        = "topology.kubernetes.io/region"
	LabelWindowsBuild  = "node.kubernetes.io/windows-build"
	LabelCapacityType  = "karpenter.sh/capacity-type"
	LabelCPU           = "karpenter.k8s.aws/instance-cpu"
	LabelCPUMaker      = "karpenter.k8s.aws/instance-cpu-manufacturer"
	LabelCPUClock      = "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz"
	LabelMemory        = "karpenter.k8s.aws/instance-memory"
	LabelEBSBandwidth  = "karpenter.k8s.aws/instance-ebs-bandwidth"
	LabelNetBandwidth  = "karpenter.k8s.aws/instance-network-bandwidth"
	LabelCategory      = "karpenter.k8s.aws/instance-category"
	LabelGeneration    = "karpenter.k8s.aws/instance-generation"
	LabelFamily        = "karpenter.k8s.aws/instance-family"
	LabelSize          = "karpenter.k8s.aws/instance-size"
	LabelFlex          = "karpenter.k8s.aws/instance-capability-flex"
	LabelLocalNVMe     = "karpenter.k8s.aws/instance-local-nvme"
	LabelHypervisor    = "karpenter.k8s.aws/instance-hypervisor"
	LabelEncryption    = "karpenter.k8s.aws/instance-encryption-in-transit-supported"
	LabelTenancy       = "karpenter.k8s.aws/instance-tenancy"
	LabelGPUName       = "karpenter.k8s.aws/instance-gpu-name"
	LabelGPUMaker      = "karpenter.k8s.aws/instance-gpu-manufacturer"
	LabelGPUCount      = "karpenter.k8s.aws/instance-gpu-count"
	LabelGPUMemory     = "karpenter.k8s.aws/instance-gpu-memory"
	LabelAccelName     = "karpenter.k8s.aws/instance-accelerator-name"
	LabelAccelMaker    = "karpenter.k8s.aws/instance-accelerator-manufacturer"
	LabelAccelCount    = "karpenter.k8s.aws/instance-accelerator-count"
	LabelReservationID = "karpenter.k8s.aws/capacity-reservation-id"
	LabelReservation   = "karpenter.k8s.aws/capacity-reservation-type"
	LabelInterruptible = "karpenter.k8s.aws/capacity-reservation-interruptible"
	LabelPlacement     = "karpenter.k8s.aws/placement-group-id"
	LabelPartition     = "karpenter.k8s.aws/placement-group-partition"
)

// LabelPrefix begins the labels that tell properties of the instance type. Of tenancy a type has two values.
const LabelPrefix = "karpenter.k8s.aws/instance-"

// Values of the label karpenter.k8s.aws/instance-tenancy.
const (
	TenancyDefault   = "default"
	TenancyDedicated = "dedicated"
)

// Extended resources that instance types have.
const (
	ResourceAMD        = "amd.com/gpu"
	ResourceNeuron     = "aws.amazon.com/neuron"
	ResourceNeuronCore = "aws.amazon.com/neuroncore"
	ResourceGaudi      = "habana.ai/gaudi"
	ResourceNVIDIA     = "nvidia.com/gpu"
	ResourcePrivateIP  = "vpc.amazonaws.com/PrivateIPv4Address"
	ResourceEFA        = "vpc.amazonaws.com/efa"
	ResourcePodENI     = "vpc.amazonaws.com/pod-eni"
)
