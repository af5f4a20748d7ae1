// Package rounding says how exact amounts and prices are that were computed by numbers of float64, and need to be.
package rounding

const (
	// Error is the part of a sum of some hundred products that rounding may have added.
	Error = 1e-9
	// LeastDivisor keeps a quotient of numbers of about 1 finite.
	LeastDivisor = 1e-13
	// Slight is the part of a price that no more work is spent on, and of a cost or of a demand what tells equals
	// apart. What half and double bring stands where it is used.
	Slight = 5e-4
	// Speck is a part of a node, of a pod or of a price that is next to nothing.
	Speck = 1e-6
)
