// Package terraform is for the test of the Terraform module of a release, which evaluates it with HCL's own library. It
// has no code of its own: nothing else needs that library.
package terraform
