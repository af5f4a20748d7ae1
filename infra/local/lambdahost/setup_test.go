package lambdahost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	assetName   = "asset.5e1f0cfb2c6d4f7aa1c0c7b2f4dd3d1c8b7e1a9f4c1d2e3f405162738495a6b7"
	deadLetters = "arn:aws:sqs:us-west-2:111122223333:joiner-demo-dead-letters"
)

// TestMain makes the demo assembly with a real binary in it, once for all tests.
func TestMain(m *testing.M) {
	if file := os.Getenv("HOST_TEST_PARENT"); file != "" {
		playParent(file)
	}
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// playParent is a program that runs a function, which writes its pid to the file, and is then killed. It never returns.
func playParent(file string) {
	err := func() error {
		a, err := LoadAssembly(os.Getenv("DEMO_ASSEMBLY"))
		if err != nil {
			return err
		}
		h, err := StartHost(context.Background(), Options{
			Assembly: a, Paused: true, SendToQueue: func(string, []byte) error { return nil },
			Credentials: func(context.Context, string, string) (string, string, string, error) { return "k", "s", "t", nil },
		})
		if err != nil {
			return err
		}
		_, err = h.InvokeFunction(context.Background(), "joiner-demo-single", RequestResponse, fmt.Appendf(nil, `{"do":"wait","signal":%q,"until":"/nowhere"}`, file))
		return err
	}()
	fmt.Fprintln(os.Stderr, "not killed in time:", err) // the function's time-out came first
	os.Exit(1)
}

func runTests(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "host-test-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, os.DirFS("testdata/demo")); err != nil {
		return 1, err
	}
	build := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", filepath.Join(dir, assetName, "bootstrap"), "./testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build probe: %w\n%s", err, out)
	}
	if err := os.Setenv("DEMO_ASSEMBLY", dir); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// cloud stands for what the host's caller provides.
type cloud struct {
	mu       sync.Mutex
	log      bytes.Buffer
	queues   map[string][][]byte
	sessions []string
}

func (c *cloud) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.Write(p)
}

func (c *cloud) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.String()
}

func (c *cloud) messages(queue string) [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.queues[queue])
}

// startHost runs the demo assembly with a minute of one second, and leaves the functions half a minute for each second
// of their time-out: a busy machine is no part of what is tested.
func startHost(t *testing.T, change func(*Options)) (*Host, *cloud) {
	t.Helper()
	a, err := LoadAssembly(os.Getenv("DEMO_ASSEMBLY"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.Functions {
		a.Functions[i].Timeout *= 30
	}
	c := &cloud{queues: map[string][][]byte{}}
	o := Options{
		Assembly: a, CloudURL: "http://127.0.0.1:1", Log: c, Minute: time.Second, Paused: true,
		Credentials: func(_ context.Context, role, session string) (string, string, string, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.sessions = append(c.sessions, session)
			return "AKIDEXAMPLE", "secret", "token-of-" + role[strings.LastIndex(role, "/")+1:], nil
		},
		SendToQueue: func(queue string, body []byte) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.queues[queue] = append(c.queues[queue], body)
			return nil
		},
	}
	if change != nil {
		change(&o)
	}
	h, err := StartHost(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log("log of the host:\n" + c.text())
		}
	})
	return h, c
}

// reply is what the probe answers.
type reply struct {
	PID       int
	Calls     int
	Env       []string
	Request   string
	ARN       string
	LeftMilli int64
	Source    string
}

func invoke(t *testing.T, h *Host, name, event string) (Result, reply) {
	t.Helper()
	result, err := h.InvokeFunction(t.Context(), name, RequestResponse, []byte(event))
	if err != nil {
		t.Fatal(err)
	}
	var r reply
	if result.FunctionError == "" {
		if err := json.Unmarshal(result.Payload, &r); err != nil {
			t.Fatal(err)
		}
	}
	return result, r
}

func wantFault(t *testing.T, r Result, kind, message string) {
	t.Helper()
	var fault struct{ ErrorType, ErrorMessage string }
	if err := json.Unmarshal(r.Payload, &fault); err != nil {
		t.Fatalf("payload %s: %v", r.Payload, err)
	}
	if r.Status != 200 || r.FunctionError != "Unhandled" || fault.ErrorType != kind || !strings.Contains(fault.ErrorMessage, message) {
		t.Errorf("got %d %q %s, want 200 Unhandled %s with %q", r.Status, r.FunctionError, r.Payload, kind, message)
	}
}

func quiet(t *testing.T, h *Host) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	if err := h.WaitIdle(ctx); err != nil {
		t.Fatal(err)
	}
}

func asError(err error, into **Error) bool {
	e, ok := errors.AsType[*Error](err)
	*into = e
	return ok
}

// await polls a condition that another process or goroutine makes true.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(4 * time.Minute)
	for !ok() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func awaitFile(t *testing.T, file string) {
	t.Helper()
	await(t, file, func() bool {
		info, err := os.Stat(file)
		return err == nil && info.Size() > 0
	})
}
