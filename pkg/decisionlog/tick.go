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

	"joiner/pkg/disruption"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/plan"
	"joiner/pkg/provisioning"
	"joiner/pkg/scheduling/binpack"
)

// Tick is a pass as a whole: what it saw and what it decided.
type Tick struct {
	Record
	RecordBody
}

// RecordBody is the part of a tick that a record leaves out.
type RecordBody struct {
	Saw    cluster.Snapshot   `json:"saw"`
	Memory *disruption.Memory `json:"memory,omitempty"` // what disrupt remembered of its last pass
	Plan   json.RawMessage    `json:"plan"`             // a plan.Plan or a disruption.Plan
}

// mostUnpacked bounds a stored tick, in bytes.
const mostUnpacked = 1 << 30

// OfProvision keeps a pass of provision. The snapshot is read, not copied.
func OfProvision(st PassStamp, s cluster.Snapshot, p plan.Plan) (Tick, error) {
	st.Function = Provision
	t := Tick{Record: newRecord(st, s), RecordBody: RecordBody{Saw: s}}
	t.addLaunches(p)
	return t.withBody(p)
}

// OfDisrupt keeps a pass of disrupt, with what it remembered before.
func OfDisrupt(st PassStamp, s cluster.Snapshot, m disruption.Memory, p disruption.Plan) (Tick, error) {
	st.Function = Disrupt
	t := Tick{Record: newRecord(st, s), RecordBody: RecordBody{Saw: s, Memory: &m}}
	t.addRemovals(p)
	return t.withBody(p)
}

func (t Tick) withBody(p any) (Tick, error) {
	var err error
	if t.Plan, err = json.Marshal(p); err != nil {
		return t, fmt.Errorf("encode plan: %w", err)
	}
	return t, nil
}

// Prefix is what the keys of all stored ticks begin with.
const Prefix = "ticks/"

// Key is where the tick is stored: by hour, then time, function and a part of its content's sum, so that equal ticks
// have one key.
func (t Tick) Key() string {
	sum := sha256.Sum256(append([]byte(t.Invocation+t.Time.Format(time.RFC3339Nano)), t.Plan...))
	return path.Join(HourPrefix(t.Time), fmt.Sprintf("%s-%s-%x.json.gz", t.Time.UTC().Format("20060102T150405.000Z"),
		t.Function, sum[:4]))
}

// HourPrefix is the folder of the ticks of an hour.
func HourPrefix(at time.Time) string { return Prefix + at.UTC().Format("2006/01/02/15") }

// KeyTime is the time in a key of Key; ok is false for another key.
func KeyTime(key string) (at time.Time, ok bool) {
	stamp, _, _ := strings.Cut(path.Base(key), "-")
	at, err := time.Parse("20060102T150405.000Z", stamp)
	return at, err == nil && strings.HasPrefix(key, Prefix)
}

// Encode writes the tick as two JSON lines, the record and the body, each packed with gzip on its own: whoever wants
// records alone reads the beginning. Equal ticks give equal bytes.
func (t Tick) Encode() ([]byte, error) {
	var out bytes.Buffer
	for _, part := range []any{t.Record, t.RecordBody} {
		zw := gzip.NewWriter(&out)
		if err := json.NewEncoder(zw).Encode(part); err != nil {
			return nil, fmt.Errorf("encode tick: %w", err)
		}
		if err := zw.Close(); err != nil {
			return nil, fmt.Errorf("encode tick: %w", err)
		}
	}
	return out.Bytes(), nil
}

// DecodeTick reads a stored tick, packed or unpacked.
func DecodeTick(data []byte) (Tick, error) {
	var t Tick
	text, err := unpackTick(data, true)
	if err != nil {
		return t, err
	}
	d := json.NewDecoder(text)
	if err := d.Decode(&t.Record); err != nil {
		return t, fmt.Errorf("decode tick: its record: %w", err)
	}
	if err := t.validateRecord(); err != nil {
		return t, err
	}
	if err := d.Decode(&t.RecordBody); err != nil {
		return t, fmt.Errorf("decode tick: what it saw: %w", err)
	}
	return t, nil
}

// DecodeRecord reads the record at the beginning of a stored tick, of which the rest may be missing.
func DecodeRecord(data []byte) (Record, error) {
	var t Tick
	text, err := unpackTick(data, false)
	if err != nil {
		return t.Record, err
	}
	if err := json.NewDecoder(text).Decode(&t.Record); err != nil {
		return t.Record, fmt.Errorf("decode tick: its record: %w", err)
	}
	return t.Record, t.validateRecord()
}

func unpackTick(data []byte, all bool) (io.Reader, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return bytes.NewReader(data), nil
	}
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("decode tick: %w", err)
	}
	zr.Multistream(all)
	return io.LimitReader(zr, mostUnpacked), nil
}

func (r Record) validateRecord() error {
	switch {
	case r.Schema != Schema:
		return fmt.Errorf("decode tick: schema is %d, this version reads %d", r.Schema, Schema)
	case r.Function != Provision && r.Function != Disrupt:
		return fmt.Errorf("decode tick: function %q is not known", r.Function)
	}
	return nil
}

// ReplayedTick is a tick decided anew.
type ReplayedTick struct {
	Plan  []byte   // JSON
	Lines []string // the plan in words, as the log has it
	Was   []string // the stored plan in words
	Same  bool     // byte for byte
}

// ReplayTick decides the tick anew from what it saw.
func ReplayTick(t Tick) (ReplayedTick, error) {
	var again ReplayedTick
	var err error
	switch t.Function {
	case Disrupt:
		var memory disruption.Memory
		if t.Memory != nil {
			memory = *t.Memory
		}
		var was disruption.Plan
		if err := json.Unmarshal(t.Plan, &was); err != nil {
			return again, fmt.Errorf("read stored plan: %w", err)
		}
		now, _ := disruption.Next(t.Saw, memory, binpack.ResolveOfferings(t.Saw))
		again.Lines, again.Was = now.Lines(), was.Lines()
		again.Plan, err = json.Marshal(now)
	default:
		var was plan.Plan
		if err := json.Unmarshal(t.Plan, &was); err != nil {
			return again, fmt.Errorf("read stored plan: %w", err)
		}
		now := provisioning.Decide(t.Saw).Plan
		again.Lines, again.Was = now.Lines(), was.Lines()
		again.Plan, err = json.Marshal(now)
	}
	if err != nil {
		return again, fmt.Errorf("encode plan: %w", err)
	}
	again.Same = bytes.Equal(again.Plan, t.Plan)
	return again, nil
}
