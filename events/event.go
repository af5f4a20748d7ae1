// Package events knows the events that Joiner handles: a sample of each, the EventBridge pattern that selects it, and its Go
// type. The stack builds its rules from the patterns, the local environment sends the samples, the functions decode with the
// types. It refuses to know what is done about an event.
package events

import (
	"embed"
	"encoding/json"
	"fmt"
	"time"
)

// Event is the envelope that EventBridge puts around every event, with a detail of its own kind.
type Event[D any] struct {
	Version    string    `json:"version"`
	ID         string    `json:"id"`
	DetailType string    `json:"detail-type"`
	Source     string    `json:"source"`
	Account    string    `json:"account"`
	Time       time.Time `json:"time"`
	Region     string    `json:"region"`
	Resources  []string  `json:"resources"`
	Detail     D         `json:"detail"`
}

// Kind is what we keep about one kind of event. Its files are <name>.sample.json and <name>.pattern.json.
type Kind string

// The events that Joiner handles.
const (
	KindSpotInterruption Kind = "spot-interruption"
	KindTick             Kind = "tick"
	KindDeployed         Kind = "deployed"
)

//go:embed *.sample.json *.pattern.json
var files embed.FS

// Kinds are all kinds, sorted by name.
func Kinds() []Kind { return []Kind{KindDeployed, KindSpotInterruption, KindTick} }

// Sample is one event of the kind, as a function receives it.
func (k Kind) Sample() ([]byte, error) { return k.read("sample") }

// Pattern is the EventBridge pattern that matches every event of the kind and no other.
func (k Kind) Pattern() ([]byte, error) { return k.read("pattern") }

func (k Kind) read(what string) ([]byte, error) {
	b, err := files.ReadFile(string(k) + "." + what + ".json")
	if err != nil {
		return nil, fmt.Errorf("read %s of event %s: %w", what, k, err)
	}
	return b, nil
}

// decode reads an event and checks that it is of the kind that the caller handles: a Lambda may be invoked by anybody with
// the right to, with anything.
func decode[D any](data []byte, source, detailType string) (Event[D], error) {
	var e Event[D]
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("decode event: %w", err)
	}
	if e.Source != source || e.DetailType != detailType {
		return e, fmt.Errorf("decode event %q: it is %q from %q, not %q from %q", e.ID, e.DetailType, e.Source, detailType, source)
	}
	return e, nil
}
