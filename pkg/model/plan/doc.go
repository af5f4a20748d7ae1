// Package plan is what a pass decided, as plain values with one text form.
//
// It knows what is wanted and why, and refuses to know how it is done. Prices are USD per hour.
package plan
