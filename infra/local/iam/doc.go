// Package iam decides as AWS IAM does whether a role may do what it asks for: it reads the identity policies of the
// roles of a synthesized stack and weighs actions, resources and conditions.
//
// It knows the policy language as far as a stack here uses it. What it does not know (an operator, a condition key, a
// policy variable, NotAction) is an error when the policies are read, never passed over. It refuses to know what a call
// touches: the caller says which action on which resource with which condition keys. Policies of resources, boundaries
// and AWS' own managed policies are not weighed.
package iam
