// Package doctor says what is wrong with a cluster and an account that Joiner works in, or is to work in, and how each
// is mended.
//
// It knows what Joiner needs and what commonly is amiss. It refuses to know how facts are found out: what nobody could
// look at is said to be unknown, never to be well.
package doctor
