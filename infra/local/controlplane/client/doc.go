// Package client starts, finds and stops local control planes (the program joiner-plane) for other Go code and for
// tests. It knows the program's command line and the files it writes; it never builds it, and refuses to know what
// runs in the cluster. Unix only.
package client
