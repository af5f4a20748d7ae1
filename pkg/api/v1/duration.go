package v1

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Duration is a time span that goes back to the API as the text the user wrote ("24h" stays "24h").
//
// +kubebuilder:validation:Type=string
type Duration struct {
	time.Duration `json:"-"`
	// Raw is the user's text; it is ignored when it does not mean the value beside it.
	Raw string `json:"-" hash:"ignore"`
}

// NewDuration is d without a text of its own.
func NewDuration(d time.Duration) Duration {
	return Duration{Duration: d}
}

// UnmarshalJSON reads a Go duration text.
func (d *Duration) UnmarshalJSON(b []byte) error {
	raw, given, err := unquote(b)
	if err != nil || !given {
		return err
	}
	span, err := parse(raw)
	if err != nil {
		return err
	}
	*d = Duration{Duration: span, Raw: raw}
	return nil
}

// MarshalJSON gives the user's text back, or Go's when the value was set in code.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(d.text())
}

func (d Duration) text() string {
	if span, err := parse(d.Raw); err == nil && span == d.Duration {
		return d.Raw
	}
	return d.Duration.String()
}

// longest stands for durations beyond Go's 292 years. The schemas take any number of digits, and one NodePool
// with too many of them must not keep all others from being read. It is whole hours, or what is made of it would be
// refused for its parts of a second.
const longest = math.MaxInt64 / time.Hour * time.Hour

// parse reads a Go duration.
func parse(raw string) (time.Duration, error) {
	span, err := time.ParseDuration(raw)
	switch {
	case err == nil:
		return span, nil
	case !tooLong(raw):
		return 0, fmt.Errorf("parse duration: %w", err)
	}
	return longest, nil
}

// tooLong reports whether the text is hours, minutes and seconds in whole numbers, which leaves their size alone to be
// wrong with it.
func tooLong(raw string) bool {
	digits := 0
	for _, c := range raw {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case digits > 0 && (c == 'h' || c == 'm' || c == 's'):
			digits = 0
		default:
			return false
		}
	}
	return raw != "" && digits == 0
}

// NillableDuration is a time span or Never. The zero value is "not given", which the API server fills with the field's
// default; Never is a nil Duration with Raw set. Both read as "no end" once stored.
//
// +kubebuilder:validation:Type=string
type NillableDuration struct {
	// Duration is nil for Never and for a value that was not given.
	*time.Duration `json:"-"`
	// Raw is the user's text; it is ignored when it does not mean the value beside it.
	Raw string `json:"-" hash:"ignore"`
}

// After is a NillableDuration of d.
func After(d time.Duration) NillableDuration {
	return NillableDuration{Duration: &d}
}

// NeverAfter is the NillableDuration that does not end.
func NeverAfter() NillableDuration {
	return NillableDuration{Raw: Never}
}

// IsZero says that the field was not given; encoding leaves it out then.
func (d NillableDuration) IsZero() bool {
	return d.Duration == nil && d.Raw == ""
}

// UnmarshalJSON reads a Go duration text or Never.
func (d *NillableDuration) UnmarshalJSON(b []byte) error {
	raw, given, err := unquote(b)
	if err != nil || !given {
		return err
	}
	if raw == Never {
		*d = NeverAfter()
		return nil
	}
	span, err := parse(raw)
	if err != nil {
		return err
	}
	*d = NillableDuration{Duration: &span, Raw: raw}
	return nil
}

// MarshalJSON gives the user's text back, or Go's when the value was set in code.
func (d NillableDuration) MarshalJSON() ([]byte, error) {
	return json.Marshal(d.text())
}

func (d NillableDuration) text() string {
	if d.Duration == nil {
		return Never
	}
	return Duration{Duration: *d.Duration, Raw: d.Raw}.text()
}

// unquote reads a JSON string. A null is no value, which leaves the field as it was, as encoding/json does with its own
// types.
func unquote(b []byte) (text string, given bool, err error) {
	var s *string
	if err := json.Unmarshal(b, &s); err != nil {
		return "", false, fmt.Errorf("read duration: %w", err)
	}
	if s == nil {
		return "", false, nil
	}
	return *s, true, nil
}
