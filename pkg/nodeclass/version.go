package nodeclass

import (
	"fmt"
	"slices"
	"strings"

	awsv1 "joiner.sh/pkg/api/aws/v1"
)

// Minor versions of Kubernetes 1 that Joiner is made for.
const (
	oldestMinor = 26
	newestMinor = 37
)

// UnsupportedReason says why Joiner may not work with a cluster of that version, such as 1.36; empty when it should. It
// is no reason to stop: nodes of a cluster that was upgraded too far must still be made and ended.
func UnsupportedReason(version string) string {
	minor, err := minorOf(version)
	switch {
	case err != nil:
		return err.Error()
	case minor < oldestMinor || minor > newestMinor:
		return fmt.Sprintf("Kubernetes %s is not within 1.%d to 1.%d, which this version of Joiner is made for",
			version, oldestMinor, newestMinor)
	}
	return ""
}

// olderKubelets is the largest number of minor versions that a kubelet may be behind its API server.
const olderKubelets = 3

// KubeletVersions returns the versions of Kubernetes that the names of the images tell, sorted. The image of somebody
// else tells none.
func KubeletVersions(images []awsv1.AMI) (out []string) {
	for _, i := range images {
		madeForEKS := strings.HasPrefix(i.Name, "amazon-eks-") || strings.HasPrefix(i.Name, "bottlerocket-aws-k8s-") ||
			strings.HasPrefix(i.Name, "Windows_Server-") && strings.Contains(i.Name, "-EKS_Optimized-")
		if !madeForEKS {
			continue
		}
		for part := range strings.SplitSeq(i.Name, "-") {
			if _, err := minorOf(part); err != nil || !strings.HasPrefix(part, "1.") {
				continue
			}
			if !slices.Contains(out, part) {
				out = append(out, part)
			}
			break
		}
	}
	slices.Sort(out)
	return out
}

// KubeletMisfit says why a kubelet of that version may not be in a cluster of the other; empty when it may, and when
// one of them cannot be read. A kubelet may be three minor versions older than its API server, and never newer.
func KubeletMisfit(kubelet, server string) string {
	k, err := minorOf(kubelet)
	s, err2 := minorOf(server)
	switch {
	case err != nil || err2 != nil || k <= s && s-k <= olderKubelets:
		return ""
	case k > s:
		return fmt.Sprintf("it has a kubelet of %s, which is newer than the cluster's %s", kubelet, server)
	}
	return fmt.Sprintf("it has a kubelet of %s, which is more than %d versions older than the cluster's %s", kubelet,
		olderKubelets, server)
}
