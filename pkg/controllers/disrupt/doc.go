// Package disrupt begins, ends and takes back disruptions by choice. Read disrupt.go for the pass and apply.go for the
// writes.
//
// Which nodes go is for disruption to decide. Replacements are launched by provision, and drains done by lifecycle.
package disrupt
