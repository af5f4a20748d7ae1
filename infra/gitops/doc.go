// Package gitops holds the tests of what those who apply manifests from a repository see of our objects: Argo CD judges
// them by scripts of its own, Flux by kstatus. It is a module of its own, so that nobody else needs theirs.
package gitops
