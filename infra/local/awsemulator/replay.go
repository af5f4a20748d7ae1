package awsemulator

import (
	"sync"

	"joiner.sh/pkg/cli/recording"
)

// replayBook counts how often each recorded answer was given.
type replayBook struct {
	mu    sync.Mutex
	given map[int]bool
}

// replayCall answers a call as a recording does that has the same question; false when none has.
func (c *Cloud) replayCall(w *outcome, r *call) bool {
	asked := recording.Call{Service: r.service, Method: r.http.Method, Path: r.http.URL.RequestURI(),
		Target: r.http.Header.Get("X-Amz-Target"), Body: string(r.body)}
	c.replayed.mu.Lock()
	defer c.replayed.mu.Unlock()
	last := -1
	for i, one := range c.opt.Recorded {
		if !one.Answers(asked) {
			continue
		}
		if last = i; !c.replayed.given[i] {
			break
		}
	}
	if last < 0 {
		return false
	}
	if c.replayed.given == nil {
		c.replayed.given = map[int]bool{}
	}
	c.replayed.given[last] = true
	answer := c.opt.Recorded[last]
	if answer.ContentType != "" {
		w.Header().Set("Content-Type", answer.ContentType)
	}
	if answer.ErrorType != "" {
		w.Header().Set("X-Amzn-Errortype", answer.ErrorType)
	}
	w.WriteHeader(answer.Status)
	_, _ = w.Write([]byte(answer.Answer)) // who hung up gets no answer
	return true
}
