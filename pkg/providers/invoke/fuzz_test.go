package invoke_test

import (
	"testing"

	"joiner.sh/pkg/providers/invoke"
)

// FuzzReason feeds payloads of anybody who may invoke a function: a reason, or none.
func FuzzReason(f *testing.F) {
	for _, text := range []string{`{"source":"joiner","detail":{"by":"push"}}`, `{"source":"joiner","detail":"{}"}`, `{"source":"aws.scheduler","detail":null}`, `[{}]`, `{"source":"joiner"}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if why := invoke.Reason(text); len(why) > len(text)*3 {
			t.Errorf("%q", why)
		}
	})
}
