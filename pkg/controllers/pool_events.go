package controllers

import "time"

// Limits of what one pass says on NodePools.
const (
	MaxPoolEvents  = 20               // pools
	PoolEventEvery = 30 * time.Minute // at most, for one pool
)
