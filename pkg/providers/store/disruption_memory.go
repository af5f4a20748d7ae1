package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	notesName  = "joiner-disruption" // of the data in the store
	notesField = "memory"            // its one entry: base64 of gzipped JSON; a node takes about 40 bytes
	maxNotes   = 16 << 20            // bytes unpacked
)

// DisruptionMemory keeps what one pass about disruption tells the next, a value that can be written as JSON. Whoever
// uses it holds the lease of those passes.
type DisruptionMemory[M any] struct{ store Store }

// NewDisruptionMemory keeps the memory in a store.
func NewDisruptionMemory[M any](store Store) DisruptionMemory[M] { return DisruptionMemory[M]{store} }

// ReadMemory returns what was remembered last. Text that is no memory counts as none: the next pass mends it.
func (n DisruptionMemory[M]) ReadMemory(ctx context.Context) (memory M, err error) {
	data, _, err := n.store.ReadData(ctx, notesName)
	if err != nil {
		return memory, fmt.Errorf("recall disruption: %w", err)
	}
	m, err := unpackText[M](data[notesField])
	if err != nil {
		return memory, nil //nolint:nilerr // whoever broke it must not stop us
	}
	return m, nil
}

// WriteMemory stores the memory, if it is another one than before.
func (n DisruptionMemory[M]) WriteMemory(ctx context.Context, m M) error {
	text, err := packText(m)
	if err != nil {
		return fmt.Errorf("remember disruption: %w", err)
	}
	data, version, err := n.store.ReadData(ctx, notesName)
	if err == nil && data[notesField] != text {
		err = n.store.WriteData(ctx, notesName, map[string]string{notesField: text}, version)
	}
	if err != nil && !isConflict(err) { // somebody else took the lease and wrote; what he knows is newer
		return fmt.Errorf("remember disruption: %w", err)
	}
	return nil
}

func packText(m any) (string, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err = z.Write(body)
	err = errors.Join(err, z.Close())
	return base64.StdEncoding.EncodeToString(out.Bytes()), err
}

func unpackText[M any](text string) (m M, err error) {
	if text == "" {
		return m, nil
	}
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return m, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return m, err
	}
	return m, json.NewDecoder(io.LimitReader(z, maxNotes)).Decode(&m)
}
