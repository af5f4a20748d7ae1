// Package clitest runs the command line against a real API server.
package clitest
