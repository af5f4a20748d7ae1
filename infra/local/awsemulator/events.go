package awsemulator

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"joiner.sh/infra/local/awsemulator/wire"
)

// bus is the default bus of EventBridge.
type bus struct {
	*account
	rules []DescribedRule
}

func (c *account) eventsOperations() map[string]operation {
	return map[string]operation{"PutEvents": op(c.bus.putEvents),
		"ListRuleNamesByTarget": op(c.bus.listRuleNamesByTarget), "DescribeRule": op(c.bus.describeRule),
		"ListTargetsByRule": op(c.bus.listTargetsByRule), "TestEventPattern": op(c.bus.testEventPattern)}
}

type putEventsInput struct {
	Entries []struct {
		Source, DetailType, Detail, EventBusName, TraceHeader string
		Resources                                             []string
		Time                                                  float64
	}
	EndpointID string `json:"EndpointId"`
}

type putResult struct {
	EventID      string `json:"EventId,omitempty"`
	ErrorCode    string `json:",omitempty"`
	ErrorMessage string `json:",omitempty"`
}

// putEvents hands each entry to Options.Events. Unlike AWS it takes events whose source is aws.*: a person who
// tries out a handler wants to send just those.
func (c *bus) putEvents(_ *call, in *putEventsInput) (any, error) {
	if len(in.Entries) == 0 || len(in.Entries) > 10 {
		return nil, wire.Fail(400, "ValidationException",
			"Value at 'entries' failed to satisfy constraint: Member must have length between 1 and 10")
	}
	failed := 0
	var results []putResult
	for _, e := range in.Entries {
		if e.Source == "" || e.DetailType == "" || !json.Valid([]byte(e.Detail)) {
			failed++
			results = append(results, putResult{ErrorCode: "MalformedDetail",
				ErrorMessage: "Source, DetailType and a JSON Detail are needed."})
			continue
		}
		at := time.Now()
		if e.Time > 0 {
			at = time.UnixMilli(int64(e.Time * 1000))
		}
		id := uuid.NewString()
		if e.Resources == nil {
			e.Resources = []string{}
		}
		text, err := json.Marshal(envelope{
			Version: "0", ID: id, DetailType: e.DetailType, Source: e.Source, Account: c.opt.Account,
			Region: c.opt.Region,
			Time:   at.UTC().Format(time.RFC3339), Resources: e.Resources, Detail: json.RawMessage(e.Detail),
		})
		if err != nil {
			return nil, wire.Fail(400, "ValidationException", "%v", err)
		}
		c.news.postEvent(text)
		results = append(results, putResult{EventID: id})
	}
	return map[string]any{"FailedEntryCount": failed, "Entries": results}, nil
}
