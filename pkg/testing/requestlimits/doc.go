// Package requestlimits knows how many requests AWS takes of an account in a region: the token buckets that the local
// environment and the simulator both play, so that one number is right or wrong in both. Start with Default. Where AWS
// publishes nothing the numbers are assumptions, and say so. It refuses to know how a refused call is told or tried
// again.
package requestlimits
