package awsemulator

import (
	"crypto/md5" //nolint:gosec // SQS' own checksum of a message
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"joiner.sh/infra/local/awsemulator/wire"
)

// sqs is SQS.
type sqs struct {
	*account
	queues map[string]*queue
}

func (c *account) sqsOperations() map[string]operation {
	return map[string]operation{
		"CreateQueue":        op(c.sqs.createQueue),
		"GetQueueUrl":        op(c.sqs.getQueueURL),
		"SendMessage":        op(c.sqs.sendMessage),
		"ReceiveMessage":     op(c.sqs.receiveMessage),
		"DeleteMessage":      op(c.sqs.deleteMessage),
		"PurgeQueue":         op(c.sqs.purgeQueue),
		"GetQueueAttributes": op(c.sqs.getQueueAttributes),
	}
}

type queue struct {
	name       string
	attributes map[string]string
	messages   []*message
	arrived    chan struct{} // closed and replaced when a message comes
}

type message struct {
	id, body, receipt string
	sent, visible     time.Time
	received          int
}

// PutQueue makes a queue exist and returns its URL. It must be called after StartServer.
func (c *sqs) PutQueue(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putQueue(name, nil)
	return c.queueURL(name)
}

// SendMessage puts a message on a queue, as a service of AWS would; false if there is no such queue.
func (c *sqs) SendMessage(queueName, body string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[queueName]
	if q == nil {
		return false
	}
	q.addMessage(body, 0)
	return true
}

// QueuedMessages returns the bodies on a queue, oldest first, those in flight too.
func (c *sqs) QueuedMessages(queueName string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	if q := c.queues[queueName]; q != nil {
		for _, m := range q.messages {
			out = append(out, m.body)
		}
	}
	return out
}

// PurgeQueue removes all messages of a queue, as somebody does at a terminal.
func (c *sqs) PurgeQueue(queueName string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.queues[queueName]; q != nil {
		q.messages = nil
	}
}

func (c *sqs) putQueue(name string, attributes map[string]string) *queue {
	q := c.queues[name]
	if q == nil {
		q = &queue{name: name, attributes: map[string]string{"VisibilityTimeout": "30"}, arrived: make(chan struct{})}
		maps.Copy(q.attributes, attributes)
		c.queues[name] = q
	}
	return q
}

func (c *sqs) queueURL(name string) string { return c.url + "/" + c.opt.Account + "/" + name }

func (q *queue) addMessage(body string, delay time.Duration) *message {
	m := &message{id: uuid.NewString(), body: body, sent: time.Now()}
	m.visible = m.sent.Add(delay)
	q.messages = append(q.messages, m)
	close(q.arrived)
	q.arrived = make(chan struct{})
	return m
}

// findQueue finds a queue by its URL. The account is locked.
func (c *sqs) findQueue(queueURL string) (*queue, error) {
	u, err := url.Parse(queueURL)
	if err == nil {
		if q := c.queues[u.Path[strings.LastIndex(u.Path, "/")+1:]]; q != nil {
			return q, nil
		}
	}
	return nil, noQueue()
}

func noQueue() error {
	f := wire.Fail(400, "com.amazonaws.sqs#QueueDoesNotExist", "The specified queue does not exist.")
	f.QueryCode = "AWS.SimpleQueueService.NonExistentQueue"
	return f
}

type createQueueInput struct {
	QueueName  string
	Attributes map[string]string
	Tags       map[string]string
}

func (c *sqs) createQueue(_ *call, in *createQueueInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.queues[in.QueueName]; q != nil {
		for k, v := range in.Attributes {
			if q.attributes[k] != v {
				f := wire.Fail(400, "com.amazonaws.sqs#QueueNameExists",
					"A queue already exists with the same name and a different value for attribute %s", k)
				f.QueryCode = "QueueAlreadyExists"
				return nil, f
			}
		}
	}
	c.putQueue(in.QueueName, in.Attributes)
	return map[string]string{"QueueUrl": c.queueURL(in.QueueName)}, nil
}

type queueInput struct {
	QueueName, QueueURL, QueueOwnerAWSAccountID, ReceiptHandle string
	AttributeNames                                             []string
}

func (c *sqs) getQueueURL(_ *call, in *queueInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queues[in.QueueName] == nil {
		return nil, noQueue()
	}
	return map[string]string{"QueueUrl": c.queueURL(in.QueueName)}, nil
}

type sendMessageInput struct {
	QueueURL, MessageBody string
	DelaySeconds          int
}

func messageChecksum(body string) string {
	sum := md5.Sum([]byte(body)) //nolint:gosec // SQS' own checksum of a message
	return hex.EncodeToString(sum[:])
}

func (c *sqs) sendMessage(_ *call, in *sendMessageInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, err := c.findQueue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	m := q.addMessage(in.MessageBody, time.Duration(in.DelaySeconds)*time.Second)
	return map[string]string{"MessageId": m.id, "MD5OfMessageBody": messageChecksum(m.body)}, nil
}

type receiveMessageInput struct {
	QueueURL                                    string
	MaxNumberOfMessages, WaitTimeSeconds        int
	VisibilityTimeout                           *int
	AttributeNames, MessageSystemAttributeNames []string
	MessageAttributeNames                       []string
	ReceiveRequestAttemptID                     string
}

type jsonMessage struct {
	MessageID     string            `json:"MessageId"`
	ReceiptHandle string            `json:"ReceiptHandle"`
	Body          string            `json:"Body"`
	MD5OfBody     string            `json:"MD5OfBody"`
	Attributes    map[string]string `json:"Attributes,omitempty"`
}

// receiveMessage waits for messages as long as the caller asked; a message taken is hidden for the visibility timeout.
func (c *sqs) receiveMessage(r *call, in *receiveMessageInput) (any, error) {
	deadline := time.Now().Add(time.Duration(in.WaitTimeSeconds) * time.Second)
	for {
		c.mu.Lock()
		q, err := c.findQueue(in.QueueURL)
		if err != nil {
			c.mu.Unlock()
			return nil, err
		}
		taken, soonest := q.takeVisible(in)
		arrived := q.arrived
		c.mu.Unlock()
		left := time.Until(deadline)
		if len(taken) > 0 || left <= 0 {
			return map[string]any{"Messages": taken}, nil
		}
		if soonest > 0 {
			left = min(left, soonest)
		}
		select {
		case <-arrived:
		case <-time.After(left):
		case <-r.http.Context().Done():
			return map[string]any{}, nil
		}
	}
}

// takeVisible hands out visible messages; if there is none it says when the next becomes visible.
func (q *queue) takeVisible(in *receiveMessageInput) (out []jsonMessage, soonest time.Duration) {
	hidden, _ := strconv.Atoi(q.attributes["VisibilityTimeout"])
	if in.VisibilityTimeout != nil {
		hidden = *in.VisibilityTimeout
	}
	now := time.Now()
	for _, m := range q.messages {
		if wait := m.visible.Sub(now); wait > 0 {
			if soonest == 0 || wait < soonest {
				soonest = wait
			}
			continue
		}
		if len(out) >= max(1, in.MaxNumberOfMessages) {
			break
		}
		m.received++
		m.receipt, m.visible = randomHex(16), now.Add(time.Duration(hidden)*time.Second)
		j := jsonMessage{MessageID: m.id, ReceiptHandle: m.receipt, Body: m.body, MD5OfBody: messageChecksum(m.body)}
		if len(in.AttributeNames)+len(in.MessageSystemAttributeNames) > 0 {
			j.Attributes = map[string]string{
				"ApproximateReceiveCount": strconv.Itoa(m.received),
				"SentTimestamp":           strconv.FormatInt(m.sent.UnixMilli(), 10),
			}
		}
		out = append(out, j)
	}
	return out, soonest
}

func (c *sqs) deleteMessage(_ *call, in *queueInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, err := c.findQueue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	q.messages = slices.DeleteFunc(q.messages, func(m *message) bool {
		return m.receipt != "" &&
			m.receipt == in.ReceiptHandle
	})
	return nil, nil
}

func (c *sqs) purgeQueue(_ *call, in *queueInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, err := c.findQueue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	q.messages = nil
	return nil, nil
}

func (c *sqs) getQueueAttributes(_ *call, in *queueInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, err := c.findQueue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	visible := 0
	for _, m := range q.messages {
		if !m.visible.After(time.Now()) {
			visible++
		}
	}
	all := maps.Clone(q.attributes)
	all["QueueArn"] = "arn:aws:sqs:" + c.opt.Region + ":" + c.opt.Account + ":" + q.name
	all["ApproximateNumberOfMessages"] = strconv.Itoa(visible)
	all["ApproximateNumberOfMessagesNotVisible"] = strconv.Itoa(len(q.messages) - visible)
	if !slices.Contains(in.AttributeNames, "All") {
		maps.DeleteFunc(all, func(k, _ string) bool { return !slices.Contains(in.AttributeNames, k) })
	}
	return map[string]any{"Attributes": all}, nil
}
