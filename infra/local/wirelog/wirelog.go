// Package wirelog writes down what is said to the emulated AWS account and what it answers, for a judge that has AWS's
// own models: infra/deploytest/wire.py. It is off unless JOINER_WIRE_LOG names a folder. Start with FromEnvironment. It
// refuses to judge, and keeps a few exchanges of each kind, the longest among them.
package wirelog

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"joiner.sh/infra/local/awsemulator"
)

// Variable names the folder that exchanges are written to, one file for each process.
const Variable = "JOINER_WIRE_LOG"

// perKind is how many exchanges of one kind are kept whatever is in them: of one action with one outcome.
const perKind = 12

// Log keeps exchanges. Its zero value keeps none.
type Log struct {
	file *os.File

	mu   sync.Mutex
	seen map[string]kind
}

type kind struct{ kept, longest int }

// FromEnvironment is a log in the folder that the environment names, or nil.
func FromEnvironment() (*Log, error) {
	folder := os.Getenv(Variable)
	if folder == "" {
		return nil, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of exchanges: %w", err)
	}
	f, err := os.CreateTemp(folder, filepath.Base(os.Args[0])+"-*.jsonl")
	if err != nil {
		return nil, fmt.Errorf("write exchanges: %w", err)
	}
	return &Log{file: f, seen: map[string]kind{}}, nil
}

// Observe is what an account tells of each exchange; nil for a log that keeps none.
func (l *Log) Observe() func(awsemulator.Exchange) {
	if l == nil {
		return nil
	}
	return l.add
}

func (l *Log) add(e awsemulator.Exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := fmt.Sprint(e.Service, " ", e.Action, " ", e.Status, " ", e.Code)
	k := l.seen[name]
	if size := len(e.Body) + len(e.URI); k.kept >= perKind && size <= k.longest {
		return
	}
	k.kept, k.longest = k.kept+1, max(k.longest, len(e.Body)+len(e.URI))
	l.seen[name] = k
	line, err := json.Marshal(e)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("write an exchange: %v", err)) // a judge who is told half acquits
	}
}

// Close ends the log.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}
