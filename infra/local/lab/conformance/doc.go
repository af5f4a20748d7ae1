// Package conformance has one suite of the calls that Joiner makes, run through the unmodified SDK clients against the
// emulated account and, with -moto, against moto. Where the two answer differently, what the documentation of the
// service says decides, and stands in the table of disagreements.
//
// It has tests only. testdata/answers holds what each of the two answers: make conformance REWRITE=1 writes it anew.
package conformance
