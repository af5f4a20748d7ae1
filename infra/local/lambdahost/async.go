package lambdahost

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"
)

// Lambda's waits between attempts of an asynchronous event, before scaling.
const (
	throttleBackoff    = time.Second
	maxThrottleBackoff = 5 * time.Minute
)

// queuedEvent is one event in a function's internal queue.
type queuedEvent struct {
	id       string
	payload  []byte
	chain    lineage
	accepted time.Time
	failures int
	last     outcome // of the latest attempt that ran
}

// enqueueEvent accepts an event and works on it until it succeeds or is given up.
func (h *Host) enqueueEvent(f *function, id string, payload []byte, chain lineage) {
	h.queued.addCount(1)
	h.work.Go(func() {
		defer h.queued.addCount(-1)
		h.processEvent(f, &queuedEvent{id: id, payload: payload, chain: chain, accepted: time.Now()})
	})
}

// processEvent retries as Lambda does: function errors a set number of times after one and then two minutes, throttles
// with a back-off from one second to five minutes, both until the event is too old.
func (h *Host) processEvent(f *function, e *queuedEvent) {
	backoff := throttleBackoff
	for {
		left := h.scaleTime(f.Async.MaxAge) - time.Since(e.accepted)
		if left <= 0 {
			h.giveUp(f, e, "EventAgeExceeded")
			return
		}
		o := f.runAttempt(e.id, e.payload, e.chain)
		var wait time.Duration
		switch {
		case o.closed || (h.ctx.Err() != nil && o.fault != ""):
			return // the host ended it
		case o.throttled:
			wait = h.scaleTime(backoff)
			backoff = min(2*backoff, maxThrottleBackoff)
		case o.fault == "":
			return
		default:
			e.failures++
			e.last = o
			if e.failures > f.Async.Retries {
				h.giveUp(f, e, "RetriesExhausted")
				return
			}
			wait = h.scaleTime(time.Duration(e.failures) * time.Minute)
		}
		left = h.scaleTime(f.Async.MaxAge) - time.Since(e.accepted)
		if !h.pauseFor(max(0, min(wait, left))) {
			return
		}
	}
}

// giveUp sends the event to the dead-letter queue and the record of it to the on-failure destination, if there are any.
func (h *Host) giveUp(f *function, e *queuedEvent, condition string) {
	h.log.writeLine(f.Short, e.id, fmt.Sprintf("given up after %d failed attempts: %s", e.failures, condition))
	letter := DeadLetter{RequestID: e.id, Condition: condition, Failures: e.failures}
	if f.DeadLetterARN == "" && f.Async.OnFailureARN == "" {
		letter.Lost, letter.Body = "no dead-letter queue and no on-failure destination", e.payload
		h.updateStats(f, func(s *FunctionStats) { s.DeadLetters = append(s.DeadLetters, letter) })
		return
	}
	if f.DeadLetterARN != "" {
		dead := letter
		dead.QueueARN, dead.Body = f.DeadLetterARN, e.payload
		dead.Attributes = map[string]string{
			"RequestID": e.id, "ErrorCode": "200", "ErrorMessage": errorMessage(e.last.payload),
		}
		h.sendDeadLetter(f, dead)
	}
	if f.Async.OnFailureARN != "" {
		record, err := f.failureRecord(e, condition)
		dead := letter
		dead.QueueARN, dead.Body = f.Async.OnFailureARN, record
		if err != nil {
			h.log.writeLine(f.Short, e.id, err.Error())
			return
		}
		h.sendDeadLetter(f, dead)
	}
}

func (h *Host) sendDeadLetter(f *function, letter DeadLetter) {
	if err := h.options.SendToQueue(letter.QueueARN, letter.Body); err != nil {
		letter.Lost = err.Error()
		h.log.writeLine(f.Short, letter.RequestID, "dead letter lost: "+err.Error())
	}
	letter.Attributes = maps.Clone(letter.Attributes)
	h.updateStats(f, func(s *FunctionStats) { s.DeadLetters = append(s.DeadLetters, letter) })
}

// invocationRecord is what Lambda sends to a destination.
type invocationRecord struct {
	Version        string          `json:"version"`
	Timestamp      string          `json:"timestamp"`
	RequestContext requestContext  `json:"requestContext"`
	RequestPayload json.RawMessage `json:"requestPayload"`
	Response       *response       `json:"responseContext,omitempty"`
	Payload        json.RawMessage `json:"responsePayload,omitempty"`
}

type requestContext struct {
	RequestID   string `json:"requestId"`
	FunctionARN string `json:"functionArn"`
	Condition   string `json:"condition"`
	Invocations int    `json:"approximateInvokeCount"`
}

type response struct {
	Status   int    `json:"statusCode"`
	Version  string `json:"executedVersion"`
	Function string `json:"functionError,omitempty"`
}

func (f *function) failureRecord(e *queuedEvent, condition string) ([]byte, error) {
	r := invocationRecord{
		Version: "1.0", Timestamp: time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), RequestPayload: e.payload,
		RequestContext: requestContext{
			RequestID: e.id, FunctionARN: f.ARN + ":$LATEST", Condition: condition, Invocations: e.failures,
		},
	}
	if e.last.fault != "" {
		r.Response = &response{Status: 200, Version: "$LATEST", Function: e.last.fault}
		r.Payload = e.last.payload
		if !json.Valid(r.Payload) {
			r.Payload = json.RawMessage(strconv.Quote(string(e.last.payload)))
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode invocation record: %w", err)
	}
	return text, nil
}

// errorMessage is the text that Lambda puts on a dead letter: the message of the error, at most 1 KB of it.
func errorMessage(payload []byte) string {
	var e struct{ ErrorMessage string }
	if json.Unmarshal(payload, &e) != nil {
		return ""
	}
	return e.ErrorMessage[:min(len(e.ErrorMessage), 1024)]
}
