// Package decisionlog is the decision log: what one pass of provision or disrupt saw and decided, as a short record and
// as a whole from which package replay decides again.
//
// It knows the two forms and how they are stored. It refuses to know where they are kept and how passes decide. Prices
// are USD per hour. Lists of a record are cut at 100 entries, so that it stays a line of a log.
package decisionlog
