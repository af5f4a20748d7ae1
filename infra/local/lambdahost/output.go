package lambdahost

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

// tailBytes is how much of an invocation's log Lambda returns with a synchronous result.
const tailBytes = 4096

// logger writes whole lines to the caller's writer, one at a time.
type logger struct {
	mu  sync.Mutex
	out io.Writer
}

// writeLine writes one line. A writer that fails loses log lines, not invocations.
func (l *logger) writeLine(source, request, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintf(l.out, "%-16s %-8.8s | %s\n", source, request, text)
}

// output takes what a process prints, line by line, and gives each line to the invocation that is running.
type output struct {
	log    *logger
	source string
	pipe   *os.File

	mu      sync.Mutex
	partial []byte
	request string
	tail    []byte
}

// followPipe passes lines on until the last writer of the pipe is gone.
func (o *output) followPipe() {
	raw, err := o.pipe.SyscallConn()
	if err != nil {
		o.log.writeLine(o.source, "", "read output: "+err.Error())
		return
	}
	// Reading and filing happen under one lock, so that drain never misses bytes that are read but not yet filed.
	_ = raw.Read(func(fd uintptr) bool { return o.readPipe(int(fd)) })
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.partial) > 0 {
		o.filePartial("")
	}
}

// drainPipe files all that is in the pipe now.
func (o *output) drainPipe() {
	raw, err := o.pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { o.readPipe(int(fd)) })
}

// readPipe reads until the pipe is empty (false) or has ended (true).
func (o *output) readPipe(fd int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	chunk := make([]byte, 32<<10)
	for {
		n, err := syscall.Read(fd, chunk)
		if err == syscall.EINTR {
			continue
		}
		if err == syscall.EAGAIN {
			return false
		}
		if n <= 0 {
			return true
		}
		o.partial = append(o.partial, chunk[:n]...)
		for {
			line, rest, found := bytes.Cut(o.partial, []byte("\n"))
			if !found {
				break
			}
			o.partial = line
			o.filePartial(string(rest))
		}
	}
}

// filePartial gives the line in partial to the log and the tail, and leaves the rest in partial.
func (o *output) filePartial(rest string) {
	o.logLine(string(o.partial))
	o.partial = []byte(rest)
}

// logLine logs one line of the current request. The caller holds the lock.
func (o *output) logLine(text string) {
	o.log.writeLine(o.source, o.request, text)
	o.tail = append(append(o.tail, text...), '\n')
	if over := len(o.tail) - tailBytes; over > 0 {
		o.tail = o.tail[over:]
	}
}

// beginRequest files what was printed before, and gives what follows to the request.
func (o *output) beginRequest(request string) {
	o.drainPipe()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.request, o.tail = request, nil
	o.logLine("START RequestId: " + request + " Version: $LATEST")
}

// endRequest files what was printed, closes the request with these lines, and returns the tail of its log.
func (o *output) endRequest(lines ...string) []byte {
	o.drainPipe()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, line := range lines {
		o.logLine(line)
	}
	o.request = ""
	return bytes.Clone(o.tail)
}
