package nodeclass

import "fmt"

// Minor versions of Kubernetes 1 that Joiner is made for.
const (
	oldestMinor = 26
	newestMinor = 36
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
