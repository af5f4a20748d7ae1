package cluster

import (
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/instancetypes"
)

const (
	requiredFeature = "feature "
	requiredDriver  = "CSI driver "
	requiredVolume  = "free volume of StorageClass "
)

// RequiredFeature names a feature that a kubelet declares, as pods require it and nodes provide it.
func RequiredFeature(name string) string { return requiredFeature + name }

// RequiredDriver names a CSI driver of which a node's CSINode has an entry, as pods require it and nodes provide it.
func RequiredDriver(name string) string { return requiredDriver + name }

// RequiredVolume names a StorageClass of whose volumes, which somebody makes beforehand, one that nobody has claimed is
// on the node, as pods require it and nodes provide it.
func RequiredVolume(class string) string { return requiredVolume + class }

// comesWithNode reports whether an agent brings the part to a node after its start: a CSI driver or its volumes.
func comesWithNode(part string) bool {
	return strings.HasPrefix(part, requiredDriver) || strings.HasPrefix(part, requiredVolume)
}

// driverRegisters is the time that a CSI driver may take to register on a node that is ready. Chosen, not measured.
const driverRegisters = 2 * time.Minute

// declaredSince is the minor version of Kubernetes 1 from which on kubelets declare a feature without being told to; 0
// for one that is off unless somebody turns it on.
func declaredSince(part string) int64 {
	if part == RequiredFeature("RestartAllContainersOnContainerExits") {
		return 36
	}
	return 0
}

// Provides reports whether the host has what a pod requires, or will have it once it is in service.
func (s *Snapshot) Provides(node StateNode, part string) bool {
	if node.Node != nil && slices.Contains(node.Node.Provides, part) {
		return true
	}
	if node.Node == nil || node.Claim != nil && !node.Node.Ready { // its kubelet may not have said all yet
		class, _ := s.ClassOf(node.Claim.ClassKey())
		return s.NewNodeProvides(class, part)
	}
	if comesWithNode(part) {
		return node.Claim != nil && (!node.Initialized() || s.Now.Sub(node.Node.ReadySince) < driverRegisters)
	}
	return false
}

// NewNodeProvides reports whether a new node of the class has what a pod requires. CSI drivers, and those who make
// volumes of local disks, come with their DaemonSets. Its nodes of the same spec and image show which features it has;
// while there is none, the version of Kubernetes in the names of its images does, and where these tell none, kubelets
// are as new as the feature.
func (s *Snapshot) NewNodeProvides(class instancetypes.Class, part string) bool {
	if comesWithNode(part) {
		return true
	}
	since, seen := declaredSince(part), false
	for _, node := range s.StateNodes() {
		if node.Claim == nil || node.Node == nil || !node.Node.Ready || !node.Claim.IsOfClass(class) {
			continue
		}
		if slices.Contains(node.Node.Provides, part) {
			return true
		}
		seen = true
	}
	return since > 0 && !seen && (class.KubeletMinor == 0 || class.KubeletMinor >= since)
}
