//go:build !karpenter_1_14

package main

const peerVersion = "v1.15.0"
