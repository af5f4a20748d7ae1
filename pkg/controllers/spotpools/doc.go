// Package spotpools keeps the cluster's record of its spot pools: what notices and launches noted, and how long spot
// nodes ran.
//
// Only refresh runs it, and only where the setting podInterruptionCostUSD is on. It refuses to decide anything.
package spotpools
