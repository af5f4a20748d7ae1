package clitest_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A watch shows the picture again and again, and an interrupt ends it as it is meant to end.
func TestStatusIsWatchedUntilItIsInterrupted(t *testing.T) {
	e := newEnv(t)
	e.node(t, "watched")
	type result struct {
		code          int
		out, progress string
	}
	done := make(chan result, 1)
	go func() {
		var r result
		r.code, r.out, r.progress = e.joiner("status", "--watch", "--every", "1s")
		done <- r
	}()
	timer := time.NewTimer(5 * time.Second)
	defer timer.Stop()
	select {
	case r := <-done:
		t.Fatalf("it ended by itself: exit %d, %s%s", r.code, r.out, r.progress)
	case <-timer.C:
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil { // the command listens for it
		t.Fatal(err)
	}
	r := <-done
	if n := strings.Count(r.out, "watched-node"); r.code != 0 || n < 2 {
		t.Errorf("exit %d, %d pictures: %s%s", r.code, n, r.out, r.progress)
	}
	if code, _, progress := e.joiner("status", "--watch", "--every", "1ms"); code != 2 || !strings.Contains(progress, "--every is 1ms") {
		t.Errorf("too often: exit %d, %s", code, progress)
	}
}
