package kube

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"joiner.sh/pkg/model/cluster"
)

// An event quotes what somebody wrote: it is one line of text that no terminal obeys, no longer than an event may be.
func TestEventsAreOneLineOfText(t *testing.T) {
	for message, want := range map[string]string{
		"no zone":                                    "no zone",
		"team In [\u202egpj\u2066] 😀":                `team In [\u202egpj\u2066] 😀`,
		"a\x1b]0;owned\a\nEvents: <none>\r\tb":       `a\u001b]0;owned\u0007 Events: <none>\u000d b`,
		"\xff" + strings.Repeat("\u202e", 500) + "x": "\ufffd" + strings.Repeat(`\u202e`, 166) + "\\",
	} {
		got := eventFrom(cluster.Event{Kind: "Pod", Namespace: "a", Name: "web", Message: message}, time.Unix(0, 0)).Message
		if got != want || !utf8.ValidString(got) || len(got) > 1000 {
			t.Errorf("%q becomes %q, want %q", message, got, want)
		}
	}
}
