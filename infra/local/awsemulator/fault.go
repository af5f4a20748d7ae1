package awsemulator

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
	"joiner.sh/pkg/testing/requestlimits"
)

// FaultKind is a way to go wrong.
type FaultKind string

// The faults. The effect of a call is what it changes in the account.
const (
	Throttle   FaultKind = "throttle"    // refused for its rate, effect not done
	FailBefore FaultKind = "fail-before" // an error, effect not done
	FailAfter  FaultKind = "fail-after"  // effect done, then an error
	LoseReply  FaultKind = "lose-reply"  // effect done, then the connection closes without an answer
	Slow       FaultKind = "slow"        // answers after Delay
	Swallow    FaultKind = "swallow"     // effect not done, and no answer ever: packets are lost
	Curtail    FaultKind = "curtail"     // effect done, and the answer of CreateFleet lacks the last instance of it
)

// Fault makes calls go wrong.
type Fault struct {
	Service string    `json:"service,omitempty"` // "" or "*": every one
	Action  string    `json:"action,omitempty"`  // "" or "*": every one; may hold * and ?
	Kind    FaultKind `json:"kind"`
	Times   int       `json:"times,omitempty"` // 0: until cleared
	// before the answer, for every kind; after the effect where the kind does it
	Delay Duration `json:"delay,omitempty"`
	// PerSecond and Burst make a token bucket for each action: a throttle hits only calls beyond it.
	PerSecond float64 `json:"perSecond,omitempty"`
	Burst     float64 `json:"burst,omitempty"`
	// Each, a parameter such as InstanceId, makes a bucket of resources: a call takes a token for each value of it, not
	// one.
	Each string `json:"each,omitempty"`
	// Status, Code and Message replace the service's own words for the error.
	Status  int    `json:"status,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// Duration is a time.Duration that is text ("1.5s") in JSON.
type Duration time.Duration

// MarshalJSON writes d as Go writes durations.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads what time.ParseDuration reads.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("parse duration: %w", err)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("parse duration: %w", err)
	}
	*d = Duration(v)
	return nil
}

// failureOf is the error that the fault answers r with.
func (f Fault) failureOf(r *call) *wire.Failure {
	out := wire.Fail(500, "InternalFailure", "An internal error has occurred")
	if r.protocol == wire.EC2Query || r.protocol == wire.RestXML {
		out.Code = "InternalError"
	}
	if f.Kind == Throttle {
		out = throttleFailure(r)
	}
	if f.Status != 0 {
		out.Status = f.Status
	}
	if f.Code != "" {
		out.Code = f.Code
		if f.Status == 0 && f.Kind != Throttle {
			out.Status = 400
		}
	}
	if f.Message != "" {
		out.Message = f.Message
	}
	return out
}

func throttleFailure(r *call) *wire.Failure {
	switch {
	case r.protocol == wire.EC2Query:
		return wire.Fail(503, "RequestLimitExceeded", "Request limit exceeded.")
	case r.protocol == wire.RestXML:
		return wire.Fail(503, "SlowDown", "Please reduce your request rate.")
	case r.protocol == wire.Query:
		return wire.Fail(400, "Throttling", "Rate exceeded")
	case r.service == "lambda":
		return wire.Fail(429, "TooManyRequestsException", "Rate Exceeded.")
	}
	return wire.Fail(400, "ThrottlingException", "Rate exceeded")
}

// faultBook holds the faults that are set.
type faultBook struct {
	mu      sync.Mutex
	set     []Fault
	buckets map[string]*requestlimits.Bucket
}

// AddFault makes later calls go wrong as f says. The first fault that fits a call is played, and only that one.
func (c *Cloud) AddFault(f Fault) {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	c.faults.set = append(c.faults.set, f)
}

// ClearFaults forgets all faults.
func (c *Cloud) ClearFaults() {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	c.faults.set, c.faults.buckets = nil, nil
}

// ActiveFaults returns the faults that are still set.
func (c *Cloud) ActiveFaults() []Fault {
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	return append([]Fault{}, c.faults.set...)
}

// takeFault returns the fault for a call and counts it; the zero Fault if none fits.
func (b *faultBook) takeFault(service, action string, form url.Values) Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	drawn := map[string]bool{} // buckets of calls, and of resources: the first that fits counts
	for i, f := range b.set {
		if !matchesPattern(f.Service, service) || !matchesPattern(f.Action, action) {
			continue
		}
		if f.PerSecond > 0 {
			if drawn[f.Each] {
				continue
			}
			drawn[f.Each] = true
			if b.spendTokens(f, service+":"+action, countTokens(f, form)) {
				continue
			}
		}
		if f.Times == 1 {
			b.set = append(b.set[:i:i], b.set[i+1:]...)
		} else if f.Times > 1 {
			b.set[i].Times--
		}
		return f
	}
	return Fault{}
}

// countTokens is what a call takes from the bucket of the fault.
func countTokens(f Fault, form url.Values) float64 {
	if f.Each == "" {
		return 1
	}
	n := 0
	for name := range form {
		if strings.HasPrefix(name, f.Each+".") {
			n++
		}
	}
	return float64(n)
}

// spendTokens takes tokens from the bucket of an action if it has so many, or is full.
func (b *faultBook) spendTokens(f Fault, action string, n float64) bool {
	if b.buckets == nil {
		b.buckets = map[string]*requestlimits.Bucket{}
	}
	key, now := action+" "+f.Each, time.Now()
	if b.buckets[key] == nil {
		b.buckets[key] = requestlimits.NewBucket(now, f.Burst, f.PerSecond)
	}
	return b.buckets[key].Spend(now, n)
}

// matchesPattern says whether a pattern with * and ? fits the text; an empty pattern fits everything.
func matchesPattern(pattern, text string) bool { return pattern == "" || matchesGlob(pattern, text) }

// matchesGlob is EC2's filter matching: * stands for any run of characters, ? for one.
func matchesGlob(pattern, text string) bool {
	if pattern == "" {
		return text == ""
	}
	switch pattern[0] {
	case '*':
		for i := 0; i <= len(text); i++ {
			if matchesGlob(pattern[1:], text[i:]) {
				return true
			}
		}
		return false
	case '?':
		return text != "" && matchesGlob(pattern[1:], text[1:])
	}
	return text != "" && pattern[0] == text[0] && matchesGlob(pattern[1:], text[1:])
}
