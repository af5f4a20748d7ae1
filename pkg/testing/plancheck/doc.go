// Package plancheck tells whether a placement of a workload keeps the rules of Kubernetes and of NodePools, and what it
// costs.
//
// It is the second opinion on every packer, so it shares no code with one: it reads the data files itself, matches node
// affinity with Kubernetes' own code, and counts in groups. It trusts nothing that a placement says about itself. It
// refuses to judge preferences, and spreads whose selector picks other pods than those that carry them, where only the
// order of arrival could tell.
package plancheck
