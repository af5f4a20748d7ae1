package ledger

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"

	"joiner/pkg/disrupt"
)

const (
	notesName  = "joiner-disruption" // of the data in the store
	notesField = "memory"            // its one entry: base64 of gzipped JSON; a node takes about 40 bytes
	maxNotes   = 16 << 20            // bytes unpacked
)

// Notes keep what one pass about disruption tells the next. Whoever uses them holds the lease of those passes.
type Notes struct{ store Store }

// NewNotes keeps notes in a store.
func NewNotes(store Store) Notes { return Notes{store} }

// Recall returns what was remembered last. Text that is no memory counts as none: the next pass mends it.
func (n Notes) Recall(ctx context.Context) (disrupt.Memory, error) {
	data, _, err := n.store.ReadData(ctx, notesName)
	if err != nil {
		return disrupt.Memory{}, fmt.Errorf("recall disruption: %w", err)
	}
	m, err := unpack(data[notesField])
	if err != nil {
		return disrupt.Memory{}, nil //nolint:nilerr // whoever broke it must not stop us
	}
	return m, nil
}

// Remember stores the memory, if it is another one than before.
func (n Notes) Remember(ctx context.Context, m disrupt.Memory) error {
	text, err := pack(m)
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

func pack(m disrupt.Memory) (string, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(body); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(out.Bytes()), nil
}

func unpack(text string) (m disrupt.Memory, err error) {
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
