package lambdahost

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"joiner.sh/infra/local/lambdahost/assembly"
)

// mapping hands the messages of a queue to a function in batches, as an event source mapping of Lambda does. The queue
// is its own: nobody else of a stack reads one that is mapped.
type mapping struct {
	assembly.Mapping
	queue      assembly.Queue
	fn         *function
	visibility time.Duration
	retention  time.Duration
	slots      chan struct{} // of the maximum concurrency

	mu       sync.Mutex
	messages []*message
	arrived  chan struct{} // closed and replaced when a message comes
}

// message is one message of the queue.
type message struct {
	id       string
	body     string
	sent     time.Time
	visible  time.Time
	received int
}

// unboundedPollers is how many batches Lambda has under way for a mapping without a maximum, in its first minute.
const unboundedPollers = 5

func (h *Host) newMapping(m assembly.Mapping) (*mapping, error) {
	f, err := h.findFunction(m.FunctionARN)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", m.LogicalID, err)
	}
	q := h.options.Assembly.FindQueue(m.QueueARN)
	n := m.MaxConcurrency
	if n == 0 {
		n = unboundedPollers
	}
	return &mapping{Mapping: m, queue: *q, fn: f,
		visibility: h.scaleTime(q.Visibility), retention: h.scaleTime(q.Retention),
		slots: make(chan struct{}, n), arrived: make(chan struct{})}, nil
}

// putMessage sends a message to the queue.
func (m *mapping) putMessage(h *Host, body []byte) {
	h.queued.addCount(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.messages = append(m.messages, &message{id: newID(), body: string(body), sent: now, visible: now})
	close(m.arrived)
	m.arrived = make(chan struct{})
}

// pollMapping hands out batches until the host closes. The place for a batch comes first, so that no message is hidden
// while its batch waits for one.
func (h *Host) pollMapping(m *mapping) {
	for {
		select {
		case m.slots <- struct{}{}:
		case <-h.ctx.Done():
			return
		}
		batch := h.gatherBatch(m)
		if batch == nil {
			return
		}
		h.work.Go(func() {
			defer func() { <-m.slots }()
			h.handOver(m, batch)
		})
	}
}

// gatherBatch waits for a message, and then as long as the window for more, or until the batch is full. Nil: the host
// closes.
func (h *Host) gatherBatch(m *mapping) (batch []*message) {
	var end time.Time // of the window
	for {
		taken, wait, arrived := m.takeMessages(h, m.BatchSize-len(batch))
		if len(batch) == 0 && len(taken) > 0 {
			end = time.Now().Add(m.Window)
		}
		batch = append(batch, taken...)
		if len(batch) > 0 {
			wait = time.Until(end)
		}
		if len(batch) == m.BatchSize || len(batch) > 0 && wait <= 0 {
			return batch
		}
		timer := time.NewTimer(wait)
		select {
		case <-arrived:
		case <-timer.C:
		case <-h.ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// takeMessages receives up to n visible messages. Wait is until the next one becomes visible, at least a moment. What
// is too old, or was received too often, leaves the queue.
func (m *mapping) takeMessages(h *Host, n int) (taken []*message, wait time.Duration, arrived chan struct{}) {
	const idle = time.Minute
	m.mu.Lock()
	defer m.mu.Unlock()
	wait = idle
	now := time.Now()
	m.messages = slices.DeleteFunc(m.messages, func(x *message) bool {
		switch {
		case now.Sub(x.sent) > m.retention:
			h.queued.addCount(-1)
			return true
		case x.visible.After(now):
			wait = min(wait, x.visible.Sub(now))
			return false
		case m.queue.MaxReceives > 0 && x.received >= m.queue.MaxReceives:
			m.moveToDeadLetters(h, x)
			return true
		case len(taken) < n:
			x.received++
			x.visible = now.Add(m.visibility)
			taken = append(taken, x)
		}
		return false
	})
	return taken, wait, m.arrived
}

// moveToDeadLetters moves a message to the dead-letter queue.
func (m *mapping) moveToDeadLetters(h *Host, x *message) {
	defer h.queued.addCount(-1)
	h.log.writeLine(m.fn.Short, x.id, fmt.Sprintf("given up after %d receives", x.received))
	h.sendDeadLetter(m.fn, DeadLetter{RequestID: x.id, Condition: "RetriesExhausted", Failures: x.received,
		QueueARN: m.queue.DeadLetterARN, Body: []byte(x.body)})
}

// sqsRecord is a message as the function gets it.
type sqsRecord struct {
	MessageID      string            `json:"messageId"`
	ReceiptHandle  string            `json:"receiptHandle"`
	Body           string            `json:"body"`
	Attributes     map[string]string `json:"attributes"`
	EventSource    string            `json:"eventSource"`
	EventSourceARN string            `json:"eventSourceARN"`
	Region         string            `json:"awsRegion"`
}

// handOver invokes the function and deletes what it handled. The rest becomes visible again.
func (h *Host) handOver(m *mapping, batch []*message) {
	var event struct{ Records []sqsRecord }
	m.mu.Lock()
	for _, x := range batch {
		event.Records = append(event.Records, sqsRecord{MessageID: x.id, ReceiptHandle: x.id, Body: x.body,
			Attributes: map[string]string{"ApproximateReceiveCount": strconv.Itoa(x.received),
				"SentTimestamp": strconv.FormatInt(x.sent.UnixMilli(), 10)},
			EventSource: "aws:sqs", EventSourceARN: m.QueueARN, Region: h.options.Assembly.Place.Region})
	}
	m.mu.Unlock()
	payload, err := json.Marshal(event)
	if err != nil {
		h.log.writeLine(m.fn.Short, "", "encode batch: "+err.Error())
		return
	}
	o := m.fn.runAttempt(newID(), payload, lineage{}.withRun(m.fn.Name))
	if o.throttled || o.closed || o.fault != "" {
		return
	}
	failed, whole := failedMessages(o.payload, batch)
	if m.Partial && whole {
		h.log.writeLine(m.fn.Short, "", "the whole batch failed: "+string(o.payload))
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.messages = slices.DeleteFunc(m.messages, func(x *message) bool {
		done := slices.Contains(batch, x) && !(m.Partial && failed[x.id])
		if done {
			h.queued.addCount(-1)
		}
		return done
	})
}

// failedMessages are those that the answer names. An answer that names something else stands for the whole batch, as in
// Lambda.
func failedMessages(answer []byte, batch []*message) (failed map[string]bool, whole bool) {
	var out struct {
		BatchItemFailures []struct {
			ItemIdentifier string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		return nil, true
	}
	failed = map[string]bool{}
	for _, f := range out.BatchItemFailures {
		if !slices.ContainsFunc(batch, func(x *message) bool { return x.id == f.ItemIdentifier }) {
			return nil, true
		}
		failed[f.ItemIdentifier] = true
	}
	return failed, false
}

// sendToQueue puts a message where a mapping takes it from, or into a queue that nobody reads.
func (h *Host) sendToQueue(arn string, body []byte) error {
	for _, m := range h.mappings {
		if m.QueueARN == arn {
			m.putMessage(h, body)
			return nil
		}
	}
	return h.options.SendToQueue(arn, body)
}
