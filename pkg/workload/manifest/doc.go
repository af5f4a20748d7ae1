// Package manifest reads Kubernetes manifests for people: streams of YAML documents, JSON, and Lists, packed or not.
//
// It knows where every field stands, so that a complaint names file, line, object and field and says what to do. It
// refuses to know what the objects mean and how files are opened. Limits: 512 MiB of JSON, 64 MiB of YAML and 100,000
// objects in one file.
package manifest
