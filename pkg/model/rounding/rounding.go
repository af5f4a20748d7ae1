// Package rounding says how exact amounts and prices are that were computed by numbers of float64.
package rounding

const (
	// Error is the part of a sum of some hundred products that rounding may have added.
	Error = 1e-9
	// LeastDivisor keeps a quotient of numbers of about 1 finite.
	LeastDivisor = 1e-13
	// Speck is a part of a node, of a pod or of a price that is next to nothing.
	Speck = 1e-6
)
