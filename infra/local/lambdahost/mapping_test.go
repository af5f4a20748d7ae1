package lambdahost

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"joiner.sh/infra/local/lambdahost/assembly"
)

// mapped puts a queue between the demo's rule about spot instances and its function, whose role may read it.
func mapped(change func(*assembly.Mapping)) func(*Options) {
	return func(o *Options) {
		a := o.Assembly
		const arn = "arn:aws:sqs:us-west-2:111122223333:joiner-demo-events"
		for i := range a.Rules {
			if a.Rules[i].Name == "joiner-demo-spotinterruption" {
				policy := fmt.Sprintf(`{"Statement":[{"Effect":"Allow","Action":"sqs:SendMessage","Resource":%q,"Principal":{"Service":"events.amazonaws.com"},"Condition":{"ArnEquals":{"aws:SourceArn":%q}}}]}`, arn, a.Rules[i].ARN)
				a.Queues = append(a.Queues, assembly.Queue{Name: "joiner-demo-events", ARN: arn, Visibility: time.Minute, Retention: time.Hour,
					Policies: []json.RawMessage{[]byte(policy)}, DeadLetterARN: deadLetters, MaxReceives: 3})
				a.Rules[i].Targets = []assembly.Target{{ID: "queue", ARN: arn}}
			}
		}
		m := assembly.Mapping{QueueARN: arn, FunctionARN: a.FindFunction("joiner-demo-probe").ARN, BatchSize: 100, Window: 50 * time.Millisecond, MaxConcurrency: 2, Partial: true}
		if change != nil {
			change(&m)
		}
		a.Mappings = append(a.Mappings, m)
	}
}

func spotEvent(name string) []byte {
	return fmt.Appendf(nil, `{"version":"0","id":"1","detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2","account":"111122223333","time":"2026-01-01T00:00:00Z","region":"us-west-2","resources":[],"detail":{"name":%q}}`, name)
}

// TestAFloodOfEventsTakesNoMoreConcurrencyThanTheMappingHas: without the queue it takes all that the account has left,
// and others are throttled.
func TestAFloodOfEventsTakesNoMoreConcurrencyThanTheMappingHas(t *testing.T) {
	const flood = 2000
	h, c := startHost(t, mapped(nil))
	for i := range flood {
		if _, err := h.DeliverEvent(spotEvent(fmt.Sprintf("event-%d.", i))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.InvokeFunction(t.Context(), "joiner-demo-single", RequestResponse, []byte(`{}`)); err != nil {
		t.Errorf("another function meanwhile: %v", err)
	}
	quiet(t, h)
	log := c.text()
	for i := range flood {
		if n := strings.Count(log, fmt.Sprintf("event-%d.", i)); n != 1 {
			t.Fatalf("event %d was handled %d times", i, n)
		}
	}
	s := h.CurrentStats().Functions["joiner-demo-probe"]
	if s.MostAtOnce > 2 || s.Throttles > 0 || s.Invocations > flood/10 {
		t.Errorf("%d at once, %d throttled, %d invocations for %d events", s.MostAtOnce, s.Throttles, s.Invocations, flood)
	}
}

// TestMessagesThatFailedComeAgain, alone, and end in the dead-letter queue.
func TestMessagesThatFailedComeAgain(t *testing.T) {
	h, c := startHost(t, mapped(nil))
	for _, name := range []string{"one.", "fail.", "three."} {
		if _, err := h.DeliverEvent(spotEvent(name)); err != nil {
			t.Fatal(err)
		}
	}
	quiet(t, h)
	log := c.text()
	for name, want := range map[string]int{"one.": 1, "fail.": 3, "three.": 1} {
		if got := strings.Count(log, name); got != want {
			t.Errorf("%s was handled %d times, want %d", name, got, want)
		}
	}
	if dead := c.messages(deadLetters); len(dead) != 1 || !strings.Contains(string(dead[0]), "fail.") {
		t.Errorf("dead letters: %q", dead)
	}
}

// TestLambdaRefusesAMapping that could not work.
func TestLambdaRefusesAMapping(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*assembly.Mapping)
		want   string
	}{
		"a window":      {func(m *assembly.Mapping) { m.Window = 0 }, "need a window"},
		"a concurrency": {func(m *assembly.Mapping) { m.MaxConcurrency = 1 }, "maximum concurrency"},
		"the rights":    {func(*assembly.Mapping) {}, "may not sqs:ReceiveMessage"},
		"a queue":       {func(m *assembly.Mapping) { m.QueueARN = "arn:aws:sqs:us-west-2:111122223333:none" }, "is not in the assembly"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := LoadAssembly(os.Getenv("DEMO_ASSEMBLY"))
			if err != nil {
				t.Fatal(err)
			}
			mapped(c.change)(&Options{Assembly: a})
			if err := a.CheckDeployment(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
