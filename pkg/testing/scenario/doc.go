// Package scenario builds cluster snapshots from a few lines of text, and checks plans against the rules of Kubernetes.
//
// It knows the words of scenario files and the rules that a placement must keep. It refuses to know how decisions are
// made: its checks share no code with them.
package scenario
