package app

import (
	"bytes"
	"os"
	"runtime/debug"
	"strconv"

	"joiner.sh/pkg/controllers"
)

// freeMemory gives back what invocations before this one left as garbage, or its first pass would be cut short for it.
func freeMemory() {
	if controllers.IsMemoryShort(readMemory()) {
		debug.FreeOSMemory()
	}
}

// readMemory is what the process has resident, and what Lambda lets it have: 0 where it says nothing.
func readMemory() (used, limit int64) {
	mib, err := strconv.ParseInt(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"), 10, 64)
	if err != nil {
		return 0, 0
	}
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0
	}
	return residentBytes(statm), mib << 20
}

// residentBytes reads the second number of a statm file, which is in pages; 0 if there is none.
func residentBytes(statm []byte) int64 {
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
