// Package fleet has EC2 start, list and end instances.
//
// It is the one place that reads AWS error codes of launches. It decides nothing: an Order says all that is asked for.
// Every call has a time limit from the SDK client and lists are bounded.
package fleet
