package faultisolation

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
)

// mostFrames bounds the stack of a panic.
const mostFrames = 24

// Panic describes a recovered panic.
type Panic struct {
	Why string // what was said
	// functions with file and line, innermost first; without addresses, so that the same panic has the same stack
	Stack []string
}

// Error says it in one line.
func (p *Panic) Error() string { return "panic: " + p.Why }

// Catch runs do, and returns its panic, or nil. What it cannot catch ends the process: a deadlock, too deep a
// recursion, a lack of memory, and panics of other goroutines. The end of a decision's time is for who set it.
func Catch(do func()) (caught *Panic) {
	defer func() {
		if said := recover(); said != nil {
			if _, ended := said.(cluster.OutOfTime); ended {
				panic(said)
			}
			caught = &Panic{Why: firstLine(fmt.Sprint(said)), Stack: callStack()}
		}
	}()
	do()
	return nil
}

// callStack returns the stack of the panic from which a deferred function is called.
func callStack() (out []string) {
	counters := make([]uintptr, 4*mostFrames)
	frames := runtime.CallersFrames(counters[:runtime.Callers(3, counters)])
	for more := true; more && len(out) < mostFrames; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case strings.HasSuffix(f.Function, "faultisolation.Catch"):
			return out
		case !strings.HasPrefix(f.Function, "runtime."):
			out = append(out, fmt.Sprintf("%s %s:%d", f.Function, path.Base(f.File), f.Line))
		}
	}
	return slices.Clip(out)
}

// firstLine returns the first line of the text, at most 200 bytes of it, for an event.
func firstLine(text string) string {
	const most = 200
	text, _, _ = strings.Cut(text, "\n")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
