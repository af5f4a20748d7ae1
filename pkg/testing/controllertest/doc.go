// Package controllertest makes worlds and invocations for the tests of the controllers: NewWorld, Functions,
// RefreshWorld.
package controllertest
