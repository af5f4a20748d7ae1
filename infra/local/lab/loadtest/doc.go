// Package loadtest launches many NodeClaims in one burst against the emulated EC2 at its documented rates.
package loadtest
