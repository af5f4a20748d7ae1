// Package iam proves the permissions of the synthesized stack both ways: what the functions do is allowed, each
// statement is needed for something they do, and what they must never do is refused.
package iam
