// Package cli runs the command line against a real API server.
package cli
