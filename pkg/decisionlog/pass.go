package decisionlog

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"joiner.sh/pkg/model/cluster"
)

// Pass is a pass as a whole: what it saw and what it decided.
type Pass struct {
	Record
	Body
}

// Body is the part of a pass that its record leaves out.
type Body struct {
	Saw    cluster.Snapshot `json:"saw"`
	Memory json.RawMessage  `json:"memory,omitempty"` // of disrupt: the disruption.Memory that it began with
	Plan   json.RawMessage  `json:"plan"`             // a plan.Plan or a disruption.Plan
}

// mostUnpacked bounds a stored pass, in bytes.
const mostUnpacked = 1 << 30

// Prefix is the start of the keys of all stored passes.
const Prefix = "passes/"

// Key returns the key under which the pass is stored: by hour, then time, function and a part of its content's sum, so
// that equal passes have one key.
func (p Pass) Key() string {
	sum := sha256.Sum256(append([]byte(p.Invocation+p.Time.Format(time.RFC3339Nano)), p.Plan...))
	return path.Join(HourPrefix(p.Time), fmt.Sprintf("%s-%s-%x.json.gz", p.Time.UTC().Format("20060102T150405.000Z"),
		p.Function, sum[:4]))
}

// HourPrefix is the folder of the passs of an hour.
func HourPrefix(at time.Time) string { return Prefix + at.UTC().Format("2006/01/02/15") }

// KeyTime is the time in a key of Key; ok is false for another key.
func KeyTime(key string) (at time.Time, ok bool) {
	stamp, _, _ := strings.Cut(path.Base(key), "-")
	at, err := time.Parse("20060102T150405.000Z", stamp)
	return at, err == nil && strings.HasPrefix(key, Prefix)
}

// Encode writes the pass as two JSON lines, the record and the body, each packed with gzip on its own: whoever wants
// records alone reads the beginning. Equal passes give equal bytes.
func (p Pass) Encode() ([]byte, error) {
	var out bytes.Buffer
	for _, part := range []any{p.Record, p.Body} {
		zw := gzip.NewWriter(&out)
		if err := json.NewEncoder(zw).Encode(part); err != nil {
			return nil, fmt.Errorf("encode pass: %w", err)
		}
		if err := zw.Close(); err != nil {
			return nil, fmt.Errorf("encode pass: %w", err)
		}
	}
	return out.Bytes(), nil
}

// DecodePass reads a stored pass, packed or unpacked.
func DecodePass(data []byte) (Pass, error) {
	var p Pass
	text, err := unpackPass(data, true)
	if err != nil {
		return p, err
	}
	d := json.NewDecoder(text)
	if err := d.Decode(&p.Record); err != nil {
		return p, fmt.Errorf("decode pass: its record: %w", err)
	}
	if err := p.validateRecord(); err != nil {
		return p, err
	}
	if err := d.Decode(&p.Body); err != nil {
		return p, fmt.Errorf("decode pass: what it saw: %w", err)
	}
	return p, nil
}

// DecodeRecord reads the record at the beginning of a stored pass, of which the rest may be missing.
func DecodeRecord(data []byte) (Record, error) {
	var p Pass
	text, err := unpackPass(data, false)
	if err != nil {
		return p.Record, err
	}
	if err := json.NewDecoder(text).Decode(&p.Record); err != nil {
		return p.Record, fmt.Errorf("decode pass: its record: %w", err)
	}
	return p.Record, p.validateRecord()
}

func unpackPass(data []byte, all bool) (io.Reader, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return bytes.NewReader(data), nil
	}
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("decode pass: %w", err)
	}
	zr.Multistream(all)
	return io.LimitReader(zr, mostUnpacked), nil
}

func (r Record) validateRecord() error {
	switch {
	case r.Schema != Schema:
		return fmt.Errorf("decode pass: schema is %d, this version reads %d", r.Schema, Schema)
	case r.Function != Provision && r.Function != Disrupt:
		return fmt.Errorf("decode pass: function %q is not known", r.Function)
	}
	return nil
}
