package translate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// What may be wrong with the containers of a pod.
const (
	troubleCrashed   = "Crashed"
	troubleOOMKilled = "OOMKilled"
)

// troubleOf says how a container of the pod ended last, where that was a failure: it does not before it was restarted,
// or waits to be.
func troubleOf(p *corev1.Pod) string {
	trouble := ""
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		last := c.LastTerminationState.Terminated
		if c.State.Terminated != nil {
			last = c.State.Terminated
		}
		switch {
		case last != nil && last.Reason == troubleOOMKilled:
			return troubleOOMKilled
		case last != nil && last.ExitCode != 0, c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff":
			trouble = troubleCrashed
		}
	}
	return trouble
}
