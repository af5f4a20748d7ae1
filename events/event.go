// Package events knows the events that Joiner handles: a sample of each, the EventBridge pattern that selects it, and
// its Go type. The stack builds its rules from the patterns, the local environment sends the samples, the functions
// decode with the types. It refuses to know what is done about an event.
package events

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
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
	Resources  Resources `json:"resources"`
	Detail     D         `json:"detail"`
}

// Resources are the ARNs that an event names. AWS' own documentation shows some events with a single text in place of
// the list.
type Resources []string

// UnmarshalJSON reads a list or a single text.
func (r *Resources) UnmarshalJSON(data []byte) error {
	var one *string
	if json.Unmarshal(data, &one) == nil {
		*r = nil
		if one != nil {
			*r = Resources{*one}
		}
		return nil
	}
	var many []string
	if err := json.Unmarshal(data, &many); err != nil {
		return err
	}
	*r = many
	return nil
}

// When is a time of which an event can do without, such as Mon, 28 Sep 2026 03:00:00 GMT or 2026-09-28T03:00:00Z. A
// text that is no time is the zero time: the event counts, only the date is not known.
type When time.Time

// UnmarshalText reads the time. A day of one digit may stand without a zero, and UTC may have its other names.
func (w *When) UnmarshalText(text []byte) error {
	*w = When{}
	const day = "Mon, 2 Jan 2006 15:04:05 "
	for _, layout := range []string{day + "GMT", day + "UTC", day + "Z", day + "-0700", time.RFC3339} {
		if t, err := time.Parse(layout, string(text)); err == nil {
			*w = When(t.UTC())
			return nil
		}
	}
	return nil
}

// Time is the time in UTC, zero if it is not known.
func (w When) Time() time.Time { return time.Time(w) }

// Kind describes one kind of event. Its files are <name>.pattern.json, <name>.sample.json and, where events
// of the kind differ, <name>.<variant>.sample.json.
type Kind string

// The events that Joiner handles.
const (
	KindDeployed                Kind = "deployed"
	KindRebalance               Kind = "rebalance"
	KindReservationInterruption Kind = "reservation-interruption"
	KindScheduledChange         Kind = "scheduled-change"
	KindSpotInterruption        Kind = "spot-interruption"
	KindStateChange             Kind = "state-change"
)

//go:embed *.sample.json *.pattern.json foreign/*.json
var files embed.FS

// AllKinds are all kinds, sorted by name.
func AllKinds() []Kind {
	return []Kind{KindDeployed, KindRebalance, KindReservationInterruption, KindScheduledChange, KindSpotInterruption,
		KindStateChange}
}

// Sample is one event of the kind, as a function receives it.
func (k Kind) Sample() ([]byte, error) { return readFile(string(k) + ".sample.json") }

// Samples are all samples of the kind, by file name.
func (k Kind) Samples() (map[string][]byte, error) {
	others, err := fs.Glob(files, string(k)+".*.sample.json")
	if err != nil {
		return nil, fmt.Errorf("find samples of event %s: %w", k, err)
	}
	return readAll(append(others, string(k)+".sample.json"))
}

// Pattern is the EventBridge pattern that matches every event of the kind and no other.
func (k Kind) Pattern() ([]byte, error) { return readFile(string(k) + ".pattern.json") }

// ForeignEvents are events, by file name, that come from the same sources and that no rule of ours may match.
func ForeignEvents() (map[string][]byte, error) {
	names, err := fs.Glob(files, "foreign/*.json")
	if err != nil {
		return nil, fmt.Errorf("find foreign events: %w", err)
	}
	return readAll(names)
}

func readAll(names []string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, name := range names {
		b, err := readFile(name)
		if err != nil {
			return nil, err
		}
		out[name] = b
	}
	return out, nil
}

func readFile(name string) ([]byte, error) {
	b, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read event file: %w", err)
	}
	return b, nil
}

// decodeEvent reads an event and checks that it is of the kind that the caller handles: a Lambda may be invoked by
// anybody with the right to, with anything.
func decodeEvent[D any](data []byte, source string, detailTypes ...string) (Event[D], error) {
	var e Event[D]
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("decode event: %w", err)
	}
	if e.Source != source || !slices.Contains(detailTypes, e.DetailType) {
		return e, fmt.Errorf("decode event %q: it is %q from %q, not %q from %q", e.ID, e.DetailType, e.Source,
			detailTypes[0], source)
	}
	return e, nil
}

// checkInstance refuses what is no instance id.
func checkInstance(event, id string) error {
	if !isInstanceID(id) {
		return fmt.Errorf("decode event %q: %q is no instance id", event, id)
	}
	return nil
}

func isInstanceID(s string) bool { return regexp.MustCompile(`^i-[0-9a-f]{8,17}$`).MatchString(s) }
