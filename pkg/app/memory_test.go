package app

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestReadMemory(t *testing.T) {
	t.Setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512")
	before, limit := readMemory()
	held := bytes.Repeat([]byte{1}, 64<<20) // written to, so that it is resident
	after, _ := readMemory()
	if limit != 512<<20 || before < 1<<20 || after < before+32<<20 {
		t.Errorf("%d of %d bytes used, %d with %d more", before, limit, after, len(held))
	}
	t.Setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
	if used, limit := readMemory(); used != 0 || limit != 0 {
		t.Errorf("outside of Lambda %d of %d", used, limit)
	}
}

// Without much garbage an invocation collects none for its age alone.
func TestGarbageIsCollectedIfWorthwhile(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	decide := func() int {
		collectIfWorthwhile()
		return debug.SetGCPercent(100)
	}
	t.Setenv("GOGC", "400")
	if got := decide(); got != 100 {
		t.Errorf("without a limit of memory: %d", got)
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 40))
	held := bytes.Repeat([]byte{1}, 64<<20)
	runtime.GC()
	if got := decide(); got != -1 {
		t.Errorf("without garbage: %d", got)
	}
	debug.SetGCPercent(-1)
	garbage := bytes.Repeat([]byte{1}, len(held)/2)
	if got := decide(); got != 400 {
		t.Errorf("with %d bytes of garbage: %d", len(garbage), got)
	}
	runtime.KeepAlive(held)
}

func TestResidentBytes(t *testing.T) {
	for text, pages := range map[string]int{"300 25 4 1 0 9 0\n": 25, "": 0, "300": 0, "300 many": 0} {
		if got := residentBytes([]byte(text)); got != int64(pages*os.Getpagesize()) {
			t.Errorf("%q: %d bytes, want %d pages", text, got, pages)
		}
	}
}
