package wirelog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"joiner.sh/infra/local/awsemulator"
)

// Of each kind the first dozen is kept, and what is longer than all before it.
func TestAFewOfEachKindAreKept(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(Variable, folder)
	l, err := FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		l.Observe()(awsemulator.Exchange{Service: "ec2", Action: "CreateFleet", Status: 200, Body: []byte("a=1")})
	}
	l.Observe()(awsemulator.Exchange{Service: "ec2", Action: "CreateFleet", Status: 400, Code: "Throttled", Body: []byte("a=1")})
	l.Observe()(awsemulator.Exchange{Service: "ec2", Action: "CreateFleet", Status: 200, Body: []byte("a=1&b=2")})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(folder + "/*.jsonl")
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if n := strings.Count(string(text), "\n"); err != nil || n != 14 {
		t.Errorf("%d exchanges, want 14 (%v)", n, err)
	}
}

func TestNothingIsWrittenUnlessAskedFor(t *testing.T) {
	t.Setenv(Variable, "")
	l, err := FromEnvironment()
	if l != nil || err != nil || l.Observe() != nil || l.Close() != nil {
		t.Error("a log without a folder: ", l, err)
	}
}
