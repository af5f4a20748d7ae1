// Package e2e tests the main job when things go wrong: with the deployed binaries, wired by the synthesized stack, on a
// real control plane and the emulated AWS. Every test has an environment of its own, in which nothing runs but what it
// fires.
//
// It needs what `make local` builds.
package e2e
