package lambdahost

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/infra/local/lambdahost/assembly"
)

func TestResultAndContext(t *testing.T) {
	h, c := startHost(t, nil)
	result, r := invoke(t, h, "arn:aws:lambda:us-west-2:111122223333:function:joiner-demo-probe", `{"do":"say"}`)
	if result.Status != 200 || r.Request != result.RequestID || r.ARN != "arn:aws:lambda:us-west-2:111122223333:function:joiner-demo-probe" {
		t.Errorf("result %+v, reply %+v", result, r)
	}
	if r.LeftMilli < 30_000 || r.LeftMilli > 60_000 {
		t.Errorf("deadline in %d ms, want 60 s, thirty times the template's 2 s", r.LeftMilli)
	}
	var lines []string
	for line := range strings.Lines(string(result.LogTail)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	if len(lines) != 5 || lines[0] != "START RequestId: "+r.Request+" Version: $LATEST" || lines[1] != "first line" ||
		!strings.HasSuffix(lines[2], "second line") || lines[3] != "END RequestId: "+r.Request ||
		!strings.HasPrefix(lines[4], "REPORT RequestId: "+r.Request+"\tDuration: ") || !strings.Contains(lines[4], "Init Duration: ") {
		t.Errorf("log tail:\n%s", result.LogTail)
	}
	if want := fmt.Sprintf("%-16s %.8s | first line\n", "probe", r.Request); !strings.Contains(c.text(), want) {
		t.Errorf("log has no line %q:\n%s", want, c.text())
	}
	stats := h.CurrentStats().Functions["joiner-demo-probe"]
	if stats.Invocations != 1 || stats.Errors != 0 || len(stats.Init) != 1 || stats.Init[0] <= 0 || stats.MaxMemoryMB < 1 {
		t.Errorf("stats = %+v", stats)
	}
}

func TestEnvironment(t *testing.T) {
	h, c := startHost(t, nil)
	_, r := invoke(t, h, "joiner-demo-probe", `{"do":"env"}`)
	var names []string
	for _, variable := range r.Env {
		name, _, _ := strings.Cut(variable, "=")
		names = append(names, name)
	}
	want := strings.Fields(`AWS_ACCESS_KEY_ID AWS_DEFAULT_REGION AWS_ENDPOINT_URL AWS_EXECUTION_ENV
		AWS_LAMBDA_FUNCTION_MEMORY_SIZE AWS_LAMBDA_FUNCTION_NAME AWS_LAMBDA_FUNCTION_VERSION
		AWS_LAMBDA_INITIALIZATION_TYPE AWS_LAMBDA_LOG_GROUP_NAME AWS_LAMBDA_LOG_STREAM_NAME AWS_LAMBDA_RUNTIME_API
		AWS_REGION AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN CATALOG_BUCKET CLUSTER_NAME GOMEMLIMIT LAMBDA_RUNTIME_DIR
		LAMBDA_TASK_ROOT LANG LIFECYCLE_FUNCTION PATH SELF TZ _HANDLER _X_AMZN_TRACE_ID`)
	if !slices.Equal(names, want) {
		t.Errorf("variables:\n%s\nwant\n%s", names, want)
	}
	for _, variable := range []string{
		"AWS_REGION=us-west-2", "AWS_ENDPOINT_URL=http://127.0.0.1:1", "GOMEMLIMIT=256MiB", "LIFECYCLE_FUNCTION=joiner-demo-single",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256", "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "_HANDLER=bootstrap",
	} {
		if !slices.Contains(r.Env, variable) {
			t.Errorf("no %s in %s", variable, r.Env)
		}
	}
	if !slices.Equal(c.sessions, []string{"joiner-demo-probe"}) {
		t.Errorf("sessions = %s, want one with the function's name", c.sessions)
	}
}

func TestErrorsKeepTheProcessOrNot(t *testing.T) {
	h, _ := startHost(t, nil)
	_, first := invoke(t, h, "joiner-demo-probe", `{}`)
	failed, _ := invoke(t, h, "joiner-demo-probe", `{"do":"fail"}`)
	wantFault(t, failed, "errorString", "told to fail")
	_, second := invoke(t, h, "joiner-demo-probe", `{}`)
	if second.PID != first.PID || second.Calls != 3 {
		t.Errorf("after an error: pid %d call %d, want the warm process %d and call 3", second.PID, second.Calls, first.PID)
	}
	panicked, _ := invoke(t, h, "joiner-demo-probe", `{"do":"panic"}`)
	wantFault(t, panicked, "string", "told to panic")
	_, third := invoke(t, h, "joiner-demo-probe", `{}`)
	if third.PID == first.PID || third.Calls != 1 {
		t.Errorf("after a panic: pid %d call %d, want a new process", third.PID, third.Calls)
	}
	gone, _ := invoke(t, h, "joiner-demo-probe", `{"do":"exit"}`)
	wantFault(t, gone, "Runtime.ExitError", "exit status 3")
	bad, _ := invoke(t, h, "joiner-demo-probe", `"no order"`)
	wantFault(t, bad, "UnmarshalTypeError", "cannot unmarshal")
	stats := h.CurrentStats().Functions["joiner-demo-probe"]
	if stats.Invocations != 7 || stats.Errors != 4 || len(stats.Init) != 3 {
		t.Errorf("stats = %+v", stats)
	}
}

func TestTimeoutKills(t *testing.T) {
	h, _ := startHost(t, func(o *Options) { o.Assembly.FindFunction("joiner-demo-probe").Timeout = 5 * time.Second })
	file := filepath.Join(t.TempDir(), "pid")
	result, _ := invoke(t, h, "joiner-demo-probe", fmt.Sprintf(`{"do":"hang","signal":%q}`, file))
	wantFault(t, result, "Sandbox.Timedout", "Task timed out after 5.00 seconds")
	pid, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/" + string(pid)); !os.IsNotExist(err) {
		t.Errorf("process %s still exists: %v", pid, err)
	}
	if stats := h.CurrentStats().Functions["joiner-demo-probe"]; stats.TimedOut != 1 || stats.Errors != 1 {
		t.Errorf("stats = %+v", stats)
	}
}

func TestInitFailure(t *testing.T) {
	h, c := startHost(t, nil)
	result, _ := invoke(t, h, "joiner-demo-broken", `{}`)
	wantFault(t, result, "Runtime.ExitError", "exit status 1")
	if !strings.Contains(c.text(), "cannot start: told so") {
		t.Errorf("log:\n%s", c.text())
	}
}

func TestKill(t *testing.T) {
	h, _ := startHost(t, nil)
	file := filepath.Join(t.TempDir(), "pid")
	done := make(chan Result, 1)
	go func() {
		result, _ := h.InvokeFunction(t.Context(), "joiner-demo-single", RequestResponse, fmt.Appendf(nil, `{"do":"hang","signal":%q}`, file))
		done <- result
	}()
	awaitFile(t, file)
	if n, err := h.KillFunction("joiner-demo-single"); n != 1 || err != nil {
		t.Errorf("killed %d, %v", n, err)
	}
	wantFault(t, <-done, "Runtime.ExitError", "signal: killed")
	if _, r := invoke(t, h, "joiner-demo-single", `{}`); r.Calls != 1 {
		t.Errorf("call %d after a kill, want a new process", r.Calls)
	}
}

func TestReservedConcurrency(t *testing.T) {
	// or the event is too old before it is throttled
	h, _ := startHost(t, func(o *Options) { o.Minute = 10 * time.Second })
	dir := t.TempDir()
	begun, until := filepath.Join(dir, "begun"), filepath.Join(dir, "until")
	first := make(chan error, 1)
	go func() {
		_, err := h.InvokeFunction(t.Context(), "joiner-demo-single", RequestResponse, fmt.Appendf(nil, `{"do":"wait","signal":%q,"until":%q}`, begun, until))
		first <- err
	}()
	awaitFile(t, begun)
	_, err := h.InvokeFunction(t.Context(), "joiner-demo-single", RequestResponse, []byte(`{}`))
	var refused *Error
	if !asError(err, &refused) || refused.Status != 429 || refused.Code != "TooManyRequestsException" ||
		refused.Reason != "ReservedFunctionConcurrentInvocationLimitExceeded" {
		t.Errorf("second invocation: %v", err)
	}
	// The asynchronous one is accepted, throttled, and runs once the first is over.
	accepted, err := h.InvokeFunction(t.Context(), "joiner-demo-single", Event, []byte(`{}`))
	if err != nil || accepted.Status != 202 {
		t.Fatalf("asynchronous: %+v %v", accepted, err)
	}
	throttledTwice := func() bool { return h.CurrentStats().Functions["joiner-demo-single"].Throttles >= 2 }
	await(t, "a second throttle", throttledTwice)
	if err := os.WriteFile(until, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	quiet(t, h)
	stats := h.CurrentStats().Functions["joiner-demo-single"]
	if stats.Invocations+len(stats.DeadLetters) != 2 || stats.Errors != 0 || len(stats.Init) != 1 {
		t.Errorf("stats = %+v", stats)
	}
}

func TestTooOldEventIsGivenUp(t *testing.T) {
	h, _ := startHost(t, nil)
	dir := t.TempDir()
	begun, until := filepath.Join(dir, "begun"), filepath.Join(dir, "until")
	go func() {
		_, _ = h.InvokeFunction(t.Context(), "joiner-demo-single", RequestResponse, fmt.Appendf(nil, `{"do":"wait","signal":%q,"until":%q}`, begun, until))
	}()
	awaitFile(t, begun)
	if _, err := h.InvokeFunction(t.Context(), "joiner-demo-single", Event, []byte(`{"source":"late"}`)); err != nil {
		t.Fatal(err)
	}
	quiet(t, h)
	letters := h.CurrentStats().Functions["joiner-demo-single"].DeadLetters
	if len(letters) != 1 || letters[0].Condition != "EventAgeExceeded" || letters[0].Failures != 0 || letters[0].Lost == "" {
		t.Errorf("dead letters = %+v", letters)
	}
	if n := h.CurrentStats().Functions["joiner-demo-single"].GaveUp(); n != 0 {
		t.Errorf("%d events count as given up, want none: it was throttled, never failed, and has no queue", n)
	}
}

func TestWhatCountsAsGivenUp(t *testing.T) {
	cases := []struct {
		name   string
		letter DeadLetter
		want   int
	}{
		{"too old behind a busy function", DeadLetter{Condition: "EventAgeExceeded"}, 0},
		{"too old after a failure", DeadLetter{Condition: "EventAgeExceeded", Failures: 1}, 1},
		{"too old, kept by a queue", DeadLetter{Condition: "EventAgeExceeded", QueueARN: "arn:aws:sqs:us-west-2:111122223333:letters"}, 1},
		{"failed to the end", DeadLetter{Condition: "RetriesExhausted", Failures: 3}, 1},
	}
	for _, c := range cases {
		if got := (FunctionStats{DeadLetters: []DeadLetter{c.letter, c.letter}}).GaveUp(); got != 2*c.want {
			t.Errorf("%s: two of it count as %d, want %d", c.name, got, 2*c.want)
		}
	}
}

func TestInvokeRefusals(t *testing.T) {
	h, _ := startHost(t, nil)
	cases := []struct {
		name, function, kind, payload, code string
		status                              int
	}{
		{"unknown function", "joiner-demo-nobody", "", "{}", "ResourceNotFoundException", 404},
		{"unknown qualifier", "joiner-demo-probe:live", "", "{}", "ResourceNotFoundException", 404},
		{"no JSON", "joiner-demo-probe", "", "{", "InvalidRequestContentException", 400},
		{"large event", "joiner-demo-probe", Event, `"` + strings.Repeat("x", 1<<20) + `"`, "RequestTooLargeException", 413},
		{"unknown type", "joiner-demo-probe", "Later", "{}", "InvalidParameterValueException", 400},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := h.InvokeFunction(t.Context(), c.function, c.kind, []byte(c.payload))
			var refused *Error
			if !asError(err, &refused) || refused.Code != c.code || refused.Status != c.status {
				t.Errorf("error = %v", err)
			}
		})
	}
	if r, err := h.InvokeFunction(t.Context(), "joiner-demo-probe", DryRun, nil); err != nil || r.Status != 204 {
		t.Errorf("dry run: %+v %v", r, err)
	}
	if n := h.CurrentStats().Functions["joiner-demo-probe"].Invocations; n != 0 {
		t.Errorf("%d invocations, want none", n)
	}
}

func TestStartRefuses(t *testing.T) {
	cases := []struct {
		name   string
		change func(a *assembly.Assembly)
		want   string
	}{
		{"architecture", func(a *assembly.Assembly) { a.Functions[0].Architecture = "arm64" }, "the template says arm64"},
		{"no bootstrap", func(a *assembly.Assembly) { a.Functions[0].Code = os.TempDir() }, "find bootstrap"},
		{"reserved variable", func(a *assembly.Assembly) {
			a.Functions[0].Environment = map[string]string{"AWS_REGION": "x"}
		}, "AWS_REGION is reserved by Lambda"},
		{"pattern", func(a *assembly.Assembly) { a.Rules[0].Pattern = []byte(`{"a":[{"like":"b"}]}`) }, `$.a[0].like: unknown operator "like"`},
		{"rate", func(a *assembly.Assembly) { a.Rules[0].Schedule = "rate(1 minutes)" }, `"minutes" is no unit for 1`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a, err := LoadAssembly(os.Getenv("DEMO_ASSEMBLY"))
			if err != nil {
				t.Fatal(err)
			}
			c.change(a)
			_, err = StartHost(t.Context(), Options{
				Assembly: a, SendToQueue: func(string, []byte) error { return nil },
				Credentials: func(context.Context, string, string) (string, string, string, error) { return "", "", "", nil },
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want it to contain %q", err, c.want)
			}
		})
	}
}
