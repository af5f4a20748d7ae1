// Package drain decides which pods of a condemned node go next.
//
// It knows the order, do-not-disrupt and the deadline of the terminationGracePeriod. Budgets are the eviction API's to
// judge; it knows enough of them not to ask in vain. Calling it again with a fresh snapshot is the next step; it keeps
// no state.
//
// What it makes of pods that will not go, while there is no deadline: one whose budget never allows, which two budgets
// select, or which is protected is waited for without an end, and without asking more than it may help; the node says
// so by an event. One that ignores SIGTERM is killed by its kubelet after its grace period, and one that is still there
// a minute later, because the kubelet is dead or a finalizer stays on the pod, is not waited for. With a deadline every
// pod is deleted in time for it.
package drain
