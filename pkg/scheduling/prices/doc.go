// Package prices finds what pods are worth, and proves what any plan for them costs at least.
//
// Start with Pricing in pricing.go: a step of a search that knows more makes another, and none changes. ShadowPrices
// (price_classes.go) are found in price_shadow.go by a linear program over classes of pods, offerings and the nodes
// that are there; bound_*.go reads lower bounds off them. pkg/designs/price-first.md says why. It refuses to know how
// pods are placed, and which plans are tried.
package prices
