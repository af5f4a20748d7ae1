// Package accept decides about `joiner accept`, the first run in a real account: what it makes and costs, when it is
// refused, which steps it has and when each is done, which instance a spot notice may name, and what was left behind.
//
// Everything of a run carries one mark: a label in the cluster and a tag in AWS, both with the key Mark. Start with
// Steps. It refuses to know how anything is read or done: a run is played by package cli.
package accept
