// Package nomination keeps new nodes free for the pods they were planned for.
//
// The scheduler fills the node that comes first with whatever fits there, and a plan that was tight ends with pods that
// have no node. A held node is born with a taint that all held nodes share, and gets one of its own when it registers.
// The pods planned for it are made to tolerate both while the node boots, so they start as soon as it is ready, and
// should nobody register it in time they go to any held node that is ready; others keep off until the node is opened,
// which is when its pods are there, or after a minute.
//
// It knows plans, claims and pods. It refuses to know how tolerations are written, and it changes no plan but by the
// taint. Why: pkg/designs/replacement-first.md.
package nomination
