// Package store remembers which offerings EC2 refused to sell, for all functions and over their lives.
//
// It knows how long a refusal counts and how entries of several writers come together. It refuses to know where they
// are kept (that is the Store) and what EC2's error codes mean (that is the writer of an entry).
package store
