// Package pattern matches JSON events against EventBridge event patterns of exact values.
//
// No rule of Joiner's uses a content filter of an event bus, such as prefix, exists or $or. A pattern with one is
// refused when it is compiled, with the operator's path, so that a rule is never wider or narrower than it would be in
// AWS. It knows nothing of rules, targets or delivery. A value in an array of the event counts as one of the field's
// values.
package pattern
