package app

import (
	"bytes"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"

	"joiner.sh/pkg/controllers"
)

// freeMemory gives back what invocations before this one left as garbage, or its first pass would be cut short for it.
func freeMemory() {
	if controllers.IsMemoryShort(readMemory()) {
		debug.FreeOSMemory()
	}
}

// leastGarbage is the part of what is in use that garbage has to be for a collection to pay.
const leastGarbage = 0.25

// collectIfWorthwhile has an invocation collect garbage only if there is some, or at the limit of memory. Go would do
// so every two minutes: in each second invocation, most of which make little and take less time than a collection.
func collectIfWorthwhile() {
	growth, err := strconv.Atoi(os.Getenv("GOGC"))
	if err != nil || debug.SetMemoryLimit(-1) == math.MaxInt64 {
		return
	}
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(heap)
	if all, live := heap[0].Value.Uint64(), heap[1].Value.Uint64(); isLittleGarbage(all, live) {
		growth = -1
	}
	debug.SetGCPercent(growth)
}

// isLittleGarbage reports whether little came since the last collection left so many bytes, 0 before the first.
func isLittleGarbage(all, live uint64) bool { return float64(all) < float64(live)*(1+leastGarbage) }

// readMemory returns the process's resident memory and what Lambda lets it have, in bytes: 0 where it says nothing.
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
