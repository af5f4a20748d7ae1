// Package controllers is the shell that the functions share: ports, permission, leases, fault isolation, measurements.
//
// Each function is a package below it with a Controller: provision, lifecycle, disrupt, notices and refresh. That
// observes, asks a decision package what to do, and has it done through ports. It decides nothing and knows no SDK. A
// pass writes only with permission (permission.go); without it, it logs what it would do. Every port says whether
// repeating a call is safe.
package controllers
