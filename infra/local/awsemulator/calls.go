package awsemulator

import (
	"sync"
	"time"
)

// Call is one request that the account answered.
type Call struct {
	Time      time.Time `json:"time"`
	Service   string    `json:"service"`
	Action    string    `json:"action"`
	Status    int       `json:"status"` // 0: the connection was closed without an answer
	Code      string    `json:"code,omitempty"`
	Fault     FaultKind `json:"fault,omitempty"`
	Caller    string    `json:"caller,omitempty"` // role ARN
	Session   string    `json:"session,omitempty"`
	DryRun    bool      `json:"dryRun,omitempty"`
	Took      Duration  `json:"took"`
	RequestID string    `json:"requestId"`
}

// callBook is the log of requests; the oldest go when it is full.
type callBook struct {
	mu     sync.Mutex
	calls  []Call
	counts map[string]int
}

const callsKept = 100_000

func (b *callBook) addCall(r *call, w *outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counts == nil {
		b.counts = map[string]int{}
	}
	b.counts[r.service+":"+r.action]++
	if len(b.calls) >= callsKept {
		b.calls = append([]Call{}, b.calls[callsKept/10:]...)
	}
	b.calls = append(b.calls, Call{
		Time: r.started, Service: r.service, Action: r.action, Status: w.status, Code: w.code, Fault: w.fault,
		Caller: r.caller.Role, Session: r.caller.Session, DryRun: r.dryRun,
		Took: Duration(time.Since(r.started)), RequestID: r.id,
	})
}

// LoggedCalls returns the log of requests, oldest first. A call is in it once it was answered.
func (c *Cloud) LoggedCalls() []Call {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	return append([]Call{}, c.calls.calls...)
}

// CallCounts returns how often each action ("ec2:CreateFleet") was called since the start or the last reset.
func (c *Cloud) CallCounts() map[string]int {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	out := make(map[string]int, len(c.calls.counts))
	for action, n := range c.calls.counts {
		out[action] = n
	}
	return out
}

// ForgetCalls empties the log and the counts.
func (c *Cloud) ForgetCalls() {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	c.calls.calls, c.calls.counts = nil, nil
}
