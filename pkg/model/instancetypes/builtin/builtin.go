// Package builtin holds the snapshot of EC2 instance types, zones and prices that is compiled into the
// binaries. It knows bytes only: what is in them is read by whoever asks. The snapshot is as old as its
// commit, so it is a fallback for the catalog in S3 and the data of the local environment, never a source of truth.
package builtin

import _ "embed"

//go:embed instance-types.json.gz
var data []byte

// Data returns the snapshot: one gzipped JSON document. Callers must not change the bytes.
func Data() []byte { return data }
