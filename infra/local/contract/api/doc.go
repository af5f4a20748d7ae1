// Package api proves the objects of pkg/api and pkg/install against a real API server: what it refuses and with which
// words, what it fills in, what comes back, what kubectl shows, and what each function's group may do. It has tests
// only.
package api
