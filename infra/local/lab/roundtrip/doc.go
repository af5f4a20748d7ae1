// Package roundtrip plays a cluster's move from Karpenter to Joiner and back, with Karpenter's own controllers. It has
// tests only, which need a program of Karpenter that infra/lab/bench builds: make round-trip.
package roundtrip
