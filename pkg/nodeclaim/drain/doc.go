// Package drain decides which pods of a node that is being terminated are evicted next.
//
// It knows the order of eviction, do-not-disrupt and the deadline of the terminationGracePeriod. The eviction API
// judges budgets; drain knows enough of them not to ask in vain. It keeps no state: the next step is a call with a
// fresh snapshot.
//
// Without a deadline it waits for ever for a protected pod, or one that no budget lets go, and tells so by an event. A
// pod that is still there a minute after its grace period is not waited for. With a deadline every pod is deleted in
// time.
package drain
