// Package pattern matches JSON events against EventBridge event patterns.
//
// It knows the content filters of an event bus: exact values, prefix, suffix, equals-ignore-case, anything-but,
// exists, numeric, wildcard, cidr and $or. A pattern with an operator it does not know is refused when it is compiled,
// with the operator's path, so that a rule is never silently wider or narrower than it would be in AWS.
// It knows nothing of rules, targets or delivery. A value in an array of the event counts as one of the field's values.
package pattern
