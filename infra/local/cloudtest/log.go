package cloudtest

import (
	"bytes"
	"sync"
)

// Log is a log that a test can read while several goroutines write it.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write takes lines.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String is all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
