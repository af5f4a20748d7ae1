// Package objects knows what the API server and EC2 make of what is written to them: the part that every world in
// memory plays the same way. Start with claim.go.
//
// It keeps nothing and knows no time: worlds hand in what they have. It refuses to know who calls and what goes wrong.
package objects
