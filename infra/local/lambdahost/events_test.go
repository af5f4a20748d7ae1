package lambdahost

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/lambdahost/assembly"
)

const spotNotice = `{"version":"0","id":"1","detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2",
"detail":{"instance-id":"i-1","instance-action":"terminate"}}`

func TestRetriesThenDeadLetter(t *testing.T) {
	h, c := startHost(t, nil)
	began := time.Now()
	event := []byte(`{"do":"fail","source":"x"}`)
	accepted, err := h.InvokeFunction(t.Context(), "joiner-demo-probe", Event, event)
	if err != nil {
		t.Fatal(err)
	}
	quiet(t, h)
	if took := time.Since(began); took < time.Second {
		t.Errorf("given up after %v, want at least one scaled minute between the attempts", took)
	}
	stats := h.CurrentStats().Functions["joiner-demo-probe"]
	if stats.Invocations != 2 || stats.Errors != 2 {
		t.Errorf("%d invocations, %d errors, want the first and the template's one retry", stats.Invocations, stats.Errors)
	}
	if diff := cmp.Diff([][]byte{event}, c.messages(deadLetters)); diff != "" {
		t.Errorf("dead letters (-want +got):\n%s", diff)
	}
	wantAttributes := map[string]string{"RequestID": accepted.RequestID, "ErrorCode": "200", "ErrorMessage": "told to fail"}
	if diff := cmp.Diff(wantAttributes, stats.DeadLetters[0].Attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	records := c.messages(stats.DeadLetters[1].QueueARN)
	if len(records) != 1 {
		t.Fatalf("%d records at the on-failure destination, want 1", len(records))
	}
	var record map[string]any
	if err := json.Unmarshal(records[0], &record); err != nil {
		t.Fatal(err)
	}
	delete(record, "timestamp")
	want := map[string]any{
		"version": "1.0",
		"requestContext": map[string]any{
			"requestId": accepted.RequestID, "condition": "RetriesExhausted", "approximateInvokeCount": 2.0,
			"functionArn": "arn:aws:lambda:us-west-2:111122223333:function:joiner-demo-probe:$LATEST",
		},
		"requestPayload":  map[string]any{"do": "fail", "source": "x"},
		"responseContext": map[string]any{"statusCode": 200.0, "executedVersion": "$LATEST", "functionError": "Unhandled"},
		"responsePayload": map[string]any{"errorMessage": "told to fail", "errorType": "errorString"},
	}
	if diff := cmp.Diff(want, record); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestDeliverByPattern(t *testing.T) {
	h, _ := startHost(t, nil)
	got, err := h.DeliverEvent([]byte(spotNotice))
	if err != nil {
		t.Fatal(err)
	}
	quiet(t, h)
	// The disabled rule matches too and must not count.
	if len(got) != 1 || got[0].Rule != "joiner-demo-spotinterruption" || got[0].RequestID == "" || got[0].Failed != "" {
		t.Errorf("deliveries = %+v", got)
	}
	other := strings.Replace(spotNotice, "Interruption Warning", "Request Fulfillment", 1)
	if got, err = h.DeliverEvent([]byte(other)); err != nil || len(got) != 0 {
		t.Errorf("other event: %+v %v", got, err)
	}
	if n := h.CurrentStats().Functions["joiner-demo-probe"].Invocations; n != 1 {
		t.Errorf("%d invocations, want 1", n)
	}
	if _, err := h.DeliverEvent([]byte("[]")); err == nil {
		t.Error("an array was taken for an event")
	}
}

func TestDeployed(t *testing.T) {
	h, _ := startHost(t, func(o *Options) {
		spot := slices.IndexFunc(o.Assembly.Rules, func(r assembly.Rule) bool { return r.Name == "joiner-demo-spotinterruption" })
		o.Assembly.Rules[spot].Pattern = []byte(`{"source":["aws.cloudformation"],"detail-type":["CloudFormation Stack Status Change"],
			"detail":{"stack-id":["` + o.Assembly.StackIDs()[0] + `"],"status-details":{"status":["CREATE_COMPLETE"]}}}`)
	})
	got, err := h.DeliverDeployed()
	if err != nil || len(got) != 1 || got[0].Rule != "joiner-demo-spotinterruption" {
		t.Errorf("deliveries = %+v, %v", got, err)
	}
	quiet(t, h)
}

func TestMissingPermission(t *testing.T) {
	h, c := startHost(t, nil)
	event := []byte(`{"source":"aws.health"}`)
	got, err := h.DeliverEvent(event)
	if err != nil {
		t.Fatal(err)
	}
	quiet(t, h)
	if len(got) != 1 || !strings.Contains(got[0].Failed, "no AWS::Lambda::Permission lets events.amazonaws.com invoke joiner-demo-probe") {
		t.Errorf("deliveries = %+v", got)
	}
	stats := h.CurrentStats()
	if n := stats.Functions["joiner-demo-probe"].Invocations; n != 0 {
		t.Errorf("%d invocations, want none", n)
	}
	if len(stats.Undelivered) != 1 || stats.Undelivered[0].Code != "NO_PERMISSIONS" || stats.Undelivered[0].QueueARN != deadLetters {
		t.Errorf("undelivered = %+v", stats.Undelivered)
	}
	if diff := cmp.Diff([][]byte{event}, c.messages(deadLetters)); diff != "" {
		t.Errorf("dead letters of the rule (-want +got):\n%s", diff)
	}
	if !strings.Contains(c.text(), "not delivered to ") {
		t.Errorf("log:\n%s", c.text())
	}
}

func TestDeadLetterQueueOfRuleNeedsAPolicy(t *testing.T) {
	h, c := startHost(t, func(o *Options) {
		for i := range o.Assembly.Queues {
			o.Assembly.Queues[i].Policies = nil
		}
	})
	if _, err := h.DeliverEvent([]byte(`{"source":"aws.health"}`)); err != nil {
		t.Fatal(err)
	}
	if u := h.CurrentStats().Undelivered; len(u) != 1 || u[0].QueueARN != "" || !strings.Contains(u[0].Why, "queue's policy") {
		t.Errorf("undelivered = %+v", u)
	}
	if n := len(c.messages(deadLetters)); n != 0 {
		t.Errorf("%d messages in a queue that refuses them", n)
	}
}

func TestScheduleFiresAndPauses(t *testing.T) {
	h, _ := startHost(t, func(o *Options) { o.Minute = 60 * time.Millisecond })
	count := func() int { return h.CurrentStats().Functions["joiner-demo-single"].Invocations }
	h.ResumeSchedules()
	await(t, "two ticks", func() bool { return count() >= 2 })
	h.PauseSchedules()
	first := h.CurrentStats().Skipped
	await(t, "a skipped tick", func() bool { return h.CurrentStats().Skipped > first })
	quiet(t, h) // a tick that came while we paused is over too
	before, skipped := count(), h.CurrentStats().Skipped
	await(t, "two skipped ticks", func() bool { return h.CurrentStats().Skipped >= skipped+2 })
	if after := count(); after != before {
		t.Errorf("%d invocations while paused", after-before)
	}
}

func TestFire(t *testing.T) {
	h, _ := startHost(t, func(o *Options) { o.Minute = time.Hour })
	began := time.Now().Add(-time.Second)
	got, err := h.FireSchedule("Tick2B3C4D5E")
	if err != nil || len(got) != 1 || got[0].Failed != "" {
		t.Fatalf("fire: %+v %v", got, err)
	}
	quiet(t, h)
	if n := h.CurrentStats().Functions["joiner-demo-single"].Invocations; n != 1 {
		t.Errorf("%d invocations, want 1", n)
	}
	var event struct {
		Version, ID, Source, Account, Region string
		DetailType                           string `json:"detail-type"`
		Time                                 time.Time
		Resources                            []string
		Detail                               map[string]any
	}
	tick := slices.IndexFunc(h.rules, func(r *rule) bool { return r.logicalID == "Tick2B3C4D5E" })
	text, err := json.Marshal(h.rules[tick].event(h.EventBus))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &event); err != nil {
		t.Fatal(err)
	}
	if event.Version != "0" || event.Source != "aws.events" || event.DetailType != "Scheduled Event" || event.Region != "us-west-2" ||
		event.Account != "111122223333" || len(event.ID) != 36 || event.Time.Before(began.Truncate(time.Second)) || len(event.Resources) != 1 || event.Detail == nil {
		t.Errorf("event = %s", text)
	}
	if _, err := h.FireSchedule("joiner-demo-spotinterruption"); err == nil {
		t.Error("a rule without a schedule fired")
	}
}

func TestSchedulerNeedsARole(t *testing.T) {
	const function = "arn:aws:lambda:us-west-2:111122223333:function:joiner-demo-probe"
	h, _ := startHost(t, func(o *Options) {
		a := o.Assembly
		a.Roles = append(a.Roles, assembly.Role{
			ARN:      "arn:aws:iam::111122223333:role/clock",
			Trust:    json.RawMessage(`{"Statement":{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"Service":"scheduler.amazonaws.com"}}}`),
			Policies: []assembly.Policy{{Document: json.RawMessage(`{"Statement":[{"Effect":"Allow","Action":"lambda:InvokeFunction","Resource":["` + function + `"]}]}`)}},
		})
		a.Schedules = []assembly.Schedule{
			{Name: "good", Enabled: true, Expression: "rate(1 hour)", Target: assembly.Target{ARN: function, RoleARN: "arn:aws:iam::111122223333:role/clock"}},
			{Name: "bad", Enabled: true, Expression: "rate(1 hour)", Target: assembly.Target{ARN: function, RoleARN: "arn:aws:iam::111122223333:role/none"}},
		}
	})
	for name, want := range map[string]bool{"good": true, "bad": false} {
		got, err := h.FireSchedule(name)
		if err != nil || len(got) != 1 || (got[0].Failed == "") != want {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

func TestSchedules(t *testing.T) {
	from := time.Date(2026, 9, 14, 17, 43, 20, 0, time.UTC) // a Monday
	cases := []struct{ expression, want string }{
		{"rate(1 minute)", "2026-09-14T17:44:20Z"},
		{"rate(5 minutes)", "2026-09-14T17:48:20Z"},
		{"rate(2 hours)", "2026-09-14T19:43:20Z"},
		{"rate(1 day)", "2026-09-15T17:43:20Z"},
		{"cron(0/5 * * * ? *)", "2026-09-14T17:45:00Z"},
		{"cron(43 17 * * ? *)", "2026-09-15T17:43:00Z"},
		{"cron(0 9 ? * MON *)", "2026-09-21T09:00:00Z"},
		{"cron(0 9 ? * 2#1 *)", "2026-10-05T09:00:00Z"},
		{"cron(0 0 L * ? *)", "2026-09-30T00:00:00Z"},
		{"cron(0 0 1 1 ? 2020)", "0001-01-01T00:00:00Z"},
		{"rate(0 minutes)", ""}, {"rate(5 minute)", ""}, {"rate(1 second)", ""}, {"at(2026-01-01T00:00:00)", ""},
		{"cron(0 9 * * * *)", ""}, {"cron(0 9 ? * ? *)", ""}, {"cron(0 9 * * ?)", ""}, {"cron(61 9 * * ? *)", ""}, {"rate(1 minute", ""},
	}
	for _, c := range cases {
		next, err := parseSchedule(c.expression, "")
		got := ""
		if err == nil {
			got = next(from).Format(time.RFC3339)
		}
		if got != c.want {
			t.Errorf("%s: %q (%v), want %q", c.expression, got, err, c.want)
		}
	}
}

func TestCloseLeavesNoProcess(t *testing.T) {
	h, c := startHost(t, func(o *Options) { o.Minute = time.Minute })
	_, warm := invoke(t, h, "joiner-demo-probe", `{}`)
	file := t.TempDir() + "/pid"
	if _, err := h.InvokeFunction(t.Context(), "joiner-demo-single", Event, []byte(`{"do":"hang","signal":"`+file+`"}`)); err != nil {
		t.Fatal(err)
	}
	awaitFile(t, file)
	busy, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other, err := StartHost(t.Context(), h.options) // a second host beside it keeps its own processes
	if err != nil {
		t.Fatal(err)
	}
	_, others := invoke(t, other, "joiner-demo-probe", `{}`)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []string{string(busy), strconv.Itoa(warm.PID)} {
		if _, err := os.Stat("/proc/" + pid); !os.IsNotExist(err) {
			t.Errorf("process %s is still there", pid)
		}
	}
	if _, again := invoke(t, other, "joiner-demo-probe", `{}`); again.PID != others.PID {
		t.Errorf("the other host's process is another: %d, %d", again.PID, others.PID)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains([]byte(c.text()), []byte("given up")) {
		t.Errorf("closing counted as a failure:\n%s", c.text())
	}
}

// The function is busy in its handler, so that it does not notice by itself that the host is gone.
func TestProcessesDieWithTheHost(t *testing.T) {
	file := t.TempDir() + "/pid"
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "HOST_TEST_PARENT="+file)
	parent.Stderr = os.Stderr
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	awaitFile(t, file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	t.Cleanup(func() {
		if t.Failed() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	await(t, "the end of process "+string(text), func() bool {
		// A process that nobody waits for stays as a zombie, which has no memory.
		memory, err := os.ReadFile("/proc/" + string(text) + "/statm")
		return err != nil || strings.HasPrefix(string(memory), "0 ")
	})
}
