// Package lifecycle takes the next step for every NodeClaim, node and instance: registration, initialization, drain,
// termination. Read lifecycle.go for the pass and apply.go for the steps.
//
// Which steps are due is for nodeclaim/lifecycle to decide.
package lifecycle
