// Package replay makes the stored form of a pass from what the pass saw and decided, and decides a stored pass again.
//
// It knows the deciding packages, which the stored form itself does not. Start with ProvisionPass and DecideAgain.
package replay
