package awsemulator

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/google/uuid"
)

// news delivers what happened to the callbacks, in order and outside of all locks.
type news struct {
	events   func([]byte)
	instance func(Instance)

	mu     sync.Mutex
	more   *sync.Cond
	queue  []func()
	closed bool
	done   chan struct{}
}

func newNews(events func([]byte), instance func(Instance)) *news {
	n := &news{events: events, instance: instance, done: make(chan struct{})}
	n.more = sync.NewCond(&n.mu)
	go n.deliverQueued()
	return n
}

func (n *news) deliverQueued() {
	defer close(n.done)
	for {
		n.mu.Lock()
		for len(n.queue) == 0 && !n.closed {
			n.more.Wait()
		}
		if n.closed {
			n.mu.Unlock()
			return
		}
		next := n.queue[0]
		n.queue = n.queue[1:]
		n.mu.Unlock()
		next()
	}
}

func (n *news) enqueueCallback(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queue = append(n.queue, f)
	n.more.Signal()
}

// stopDelivery ends delivery; what is still queued is dropped.
func (n *news) stopDelivery() {
	n.mu.Lock()
	n.closed = true
	n.more.Signal()
	n.mu.Unlock()
	<-n.done
}

func (n *news) postInstance(i Instance) {
	if n.instance != nil {
		n.enqueueCallback(func() { n.instance(i) })
	}
}

func (n *news) postEvent(envelope []byte) {
	if n.events != nil {
		n.enqueueCallback(func() { n.events(envelope) })
	}
}

// envelope is an event as EventBridge delivers it.
type envelope struct {
	Version    string   `json:"version"`
	ID         string   `json:"id"`
	DetailType string   `json:"detail-type"`
	Source     string   `json:"source"`
	Account    string   `json:"account"`
	Time       string   `json:"time"`
	Region     string   `json:"region"`
	Resources  []string `json:"resources"`
	Detail     any      `json:"detail"`
}

// emitEvent posts an event of EC2 itself about one instance. Spot events name the zone and no account in the ARN,
// state changes the region and the account.
func (c *account) emitEvent(detailType, resource string, detail map[string]string) {
	text, err := json.Marshal(envelope{
		Version: "0", ID: uuid.NewString(), DetailType: detailType, Source: "aws.ec2",
		Account: c.opt.Account, Time: time.Now().UTC().Format(time.RFC3339), Region: c.opt.Region,
		Resources: []string{resource}, Detail: detail,
	})
	if err == nil { // strings always marshal
		c.news.postEvent(text)
	}
}
