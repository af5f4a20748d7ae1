//go:build linux

package cli

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// TestPeakMemoryIsTheProgramsOwn: a program that one with much memory starts does not tell the peak of that one.
func TestPeakMemoryIsTheProgramsOwn(t *testing.T) {
	if os.Getenv("PRINT_PEAK") != "" {
		os.Stdout.WriteString(strconv.FormatFloat(maxRSSMiB(), 'f', 0, 64) + "\n")
		os.Exit(0)
	}
	const most = 256
	much := make([]byte, most<<20)
	for i := 0; i < len(much); i += 4096 {
		much[i] = 1
	}
	cmd := exec.Command(os.Args[0], "-test.run", t.Name()+"$")
	cmd.Env = append(os.Environ(), "PRINT_PEAK=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	peak, err := strconv.Atoi(string(out[:len(out)-1]))
	if err != nil || peak < 1 || peak >= most {
		t.Errorf("a small program that one of more than %d MiB starts has a peak of %q MiB, error %v", most, out, err)
	}
	if own := maxRSSMiB(); own < most || much[4096] != 1 {
		t.Errorf("a program that wrote %d MiB has a peak of %.0f MiB", most, own)
	}
}
