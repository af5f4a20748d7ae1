// Package cloudformation plays CloudFormation with a synthesized template: it creates, updates and deletes a stack
// resource by resource, in any order that dependencies leave open, and rolls back what fails.
//
// What it holds about CloudFormation is in rules.go, each rule with a second witness. Start with Player. What a
// resource means in the account is the business of an Account. It refuses to know time: whatever may happen before
// something slow is done happens before it in one of the orders. Limits: no nested stacks, change sets, imports or
// snapshots.
package cloudformation
