package instancetypes

import "strings"

// Families of machine images.
const (
	AL2          = "AL2"
	AL2023       = "AL2023"
	Bottlerocket = "Bottlerocket"
	Windows2019  = "Windows2019"
	Windows2022  = "Windows2022"
	Windows2025  = "Windows2025"
	Custom       = "Custom"
)

// IsWindows reports whether the image family is one of Windows.
func IsWindows(family string) bool { return strings.HasPrefix(family, "Windows") }

// WindowsBuild is the build number that nodes of a Windows family have as a label, empty for other families.
func WindowsBuild(family string) string {
	switch family {
	case Windows2019:
		return "10.0.17763"
	case Windows2022:
		return "10.0.20348"
	case Windows2025:
		return "10.0.26100"
	}
	return ""
}

// limitsPodsByENI reports whether pods get addresses of the node's network interfaces, so that these bound their
// number.
func limitsPodsByENI(family string) bool { return !IsWindows(family) }

// honorsPodsPerCore reports whether the family can express the kubelet setting podsPerCore.
func honorsPodsPerCore(family string) bool { return family != Bottlerocket }

// reservesByENI reports whether the memory kept for the kubelet follows the pods that the network interfaces would
// allow, whatever maxPods says; otherwise it follows the effective number of pods.
func reservesByENI(family string) bool { return family != Bottlerocket && !IsWindows(family) }
