// Package unpack reads packed JSON that somebody else may have written, within bounds: a few kilobytes unpack to
// millions of empty objects, each of which takes as much memory as a full one. Start with JSON.
package unpack

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
)

// Bounds caps what a text may have; honest ones are far from it.
type Bounds struct {
	Bytes   int64 // unpacked
	Objects int   // with nulls, which become objects too
	Values  int
}

// JSON reads a gzipped text. It refuses one that is out of bounds before a value of it is made.
func JSON(packed io.Reader, most Bounds, into any) error {
	z, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(z, most.Bytes+1))
	if err != nil {
		return err
	}
	if int64(len(b)) > most.Bytes {
		return fmt.Errorf("larger than %d bytes", most.Bytes)
	}
	if n := bytes.Count(b, []byte("{")) + bytes.Count(b, []byte("null")); n > most.Objects {
		return fmt.Errorf("%d objects, at most %d are read", n, most.Objects)
	}
	if n := bytes.Count(b, []byte(",")); n > most.Values {
		return fmt.Errorf("%d values, at most %d are read", n, most.Values)
	}
	return json.Unmarshal(b, into)
}
