package cli_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"joiner.sh/pkg/cli"
)

// screen can be read while it is written.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write takes text.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// String is all that was written.
func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// A watch shows the picture again and again, and an interrupt ends it as it is meant to end.
func TestStatusIsWatchedUntilItIsInterrupted(t *testing.T) {
	e := newEnv(t)
	e.node(t, "watched")
	out, progress, done := &screen{}, &screen{}, make(chan int, 1)
	go func() {
		done <- cli.Run([]string{"status", "--watch", "--every", "1s", "--kubeconfig", e.plane.KubeconfigPath()}, out, progress)
	}()
	e.eventually(t, "two pictures", func(context.Context) (string, bool) {
		select {
		case code := <-done:
			t.Fatalf("it ended by itself: exit %d, %s%s", code, out, progress)
		default:
		}
		return out.String() + progress.String(), strings.Count(out.String(), "watched-node") >= 2
	})
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil { // the command listens for it
		t.Fatal(err)
	}
	if code := <-done; code != 0 {
		t.Errorf("exit %d: %s%s", code, out, progress)
	}
	if code, _, progress := e.joiner("status", "--watch", "--every", "1ms"); code != 2 || !strings.Contains(progress, "--every is 1ms") {
		t.Errorf("too often: exit %d, %s", code, progress)
	}
}
