// Package decisionlog is the decision log: what one pass of provision or disrupt saw and decided, as a short record and
// as a whole that gives the same plan again.
//
// It knows the two forms, how they are stored and how a stored tick is decided anew. It refuses to know where they are
// kept. Prices are USD per hour. Lists of a record are cut at 100 entries, so that it stays a line of a log.
package decisionlog
