package confine

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A loop of the shell uses a whole processor if it is let.
const endless = "while :; do :; done"

func TestAProcessGetsItsShareOfTheProcessor(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", endless)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			p, err := ConfineProcess(kind, cmd.Process.Pid, Limits{MemoryBytes: 1 << 30, Processors: 0.2})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			time.Sleep(2 * time.Second)
			u, err := ReadUsage(cmd.Process.Pid)
			// The process may have the 100 ms of a period and those of its first steps at once.
			if most := time.Since(began)/5 + 250*time.Millisecond; err != nil || u.CPU > most || u.CPU == 0 {
				t.Errorf("used %v (%v), want at most %v", u.CPU, err, most)
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAProcessThatTakesTooMuchMemoryIsKilled(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind, func(t *testing.T) {
			// The shell waits for a line, so that it is confined before it grows.
			cmd := exec.Command("sh", "-c", `read go; x=0123456789; while :; do x=$x$x; done`)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			p, err := ConfineProcess(kind, cmd.Process.Pid, Limits{MemoryBytes: 64 << 20, Processors: 1})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := in.Write([]byte("\n")); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Errorf("ended with %v, want it killed", err)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// kinds are those of this machine.
func kinds() []string {
	if kind := DetectKind(); kind != Watched {
		return []string{kind, Watched}
	}
	return []string{Watched}
}

func TestProcessorTime(t *testing.T) {
	got, err := processorTime("7 (a (b) c) S 1 7 7 0 -1 4194560 1 0 0 0 12 30 0 0 20 0")
	if want := 420 * time.Millisecond; got != want || err != nil {
		t.Errorf("%v (%v), want %v", got, err, want)
	}
	if _, err := processorTime("7 (a) S 1"); err == nil {
		t.Error("a short line is read")
	}
}

func TestCredit(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ have, passed, used, want time.Duration }{
		{0, 100 * ms, 20 * ms, 0},
		{0, 100 * ms, 50 * ms, -30 * ms},
		{-30 * ms, 100 * ms, 0, -10 * ms},
		{90 * ms, 1000 * ms, 0, mostCredit},
	} {
		if got := nextCredit(c.have, c.passed, c.used, 0.2); got != c.want {
			t.Errorf("credit %v, %v passed, %v used: %v, want %v", c.have, c.passed, c.used, got, c.want)
		}
	}
}
