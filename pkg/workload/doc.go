// Package workload is the file formats of planning without a cluster: a workload file goes in, a placement comes out.
//
// It knows the two formats (Kubernetes' own types inside), reads JSON and YAML, packed or not, and refuses files that
// make no sense, naming file, field and what to do. It refuses to know how files are opened and how pods are placed.
package workload
