// Package app makes the programs out of settings, adapters and control. It is the only place that reads the environment
// and that knows which adapter stands behind which port.
package app
