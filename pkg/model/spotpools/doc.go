// Package spotpools keeps what a cluster saw of its spot pools and estimates how often each of them is interrupted.
//
// A spot pool is an instance type in a zone. The record of a pool is its node hours, interruptions, rebalance
// recommendations and refusals, which all fade with the same half-life. The hazard of a pool is the mean of a gamma
// distribution: what was seen of the pool, added to a prior of its family in the zone, which has a prior of the zone,
// which has a prior of all pools. So a pool of which little is known counts as its zone and family do.
//
// It refuses to know prices, instance types and where the record is stored.
package spotpools
