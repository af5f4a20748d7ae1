package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"

	"joiner.sh/pkg/model/controls"
	"joiner.sh/pkg/workload"
)

func TestControlsAreSpeltOut(t *testing.T) {
	for name, c := range map[string]struct{ in, plain, coloured string }{
		"plain":           {"a\tb\nc é 漢", "a\tb\nc é 漢", "a\tb\nc é 漢"},
		"a title":         {"\x1b]0;PWNED\a", `\u001b]0;PWNED\u0007`, `\u001b]0;PWNED\u0007`},
		"a cleared page":  {"\x1b[2J\r", `\u001b[2J\u000d`, `\u001b[2J\u000d`},
		"one byte of CSI": {"a\u009b2J\x7f", `a\u009b2J\u007f`, `a\u009b2J\u007f`},
		"raw CSI":         {"a\x9b2J", "a\ufffd2J", "a\ufffd2J"},
		"turned around":   {"a\u202eb\u2066c\u200fd", `a\u202eb\u2066c\u200fd`, `a\u202eb\u2066c\u200fd`},
		"of no width":     {"a\u200bb\u2060\ufeff\u00ad\U000e0041\u3164c", `a\u200bb\u2060\ufeff\u00ad\udb40\udc41\u3164c`, `a\u200bb\u2060\ufeff\u00ad\udb40\udc41\u3164c`},
		"many marks":      {"e\u0301\u0323 a" + strings.Repeat("\u0301", 6) + "b", "e\u0301\u0323 a\u0301\u0301\u0301\u0301\\u0301\\u0301b", "e\u0301\u0323 a\u0301\u0301\u0301\u0301\\u0301\\u0301b"},
		"our colours":     {text.Colors{text.FgRed, text.Bold}.Sprint("x"), `\u001b[31;1mx\u001b[0m`, "\x1b[31;1mx\x1b[0m"},
		"hidden":          {"\x1b[8mx\x1b[0;8m", `\u001b[8mx\u001b[0;8m`, `\u001b[8mx\u001b[0;8m`},
	} {
		if got := (controlFilter{}).clean(c.in); got != c.plain {
			t.Errorf("%s: %q, want %q", name, got, c.plain)
		}
		if got := (controlFilter{colours: true}).clean(c.in); got != c.coloured {
			t.Errorf("%s, in colour: %q, want %q", name, got, c.coloured)
		}
	}
}

// A hostile value in a manifest reaches neither table nor message: a reason quotes it.
func TestHostileManifests(t *testing.T) {
	spec := small + `, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: team, operator: In, values: ["\e]0;PWNED\a\e[2J\rjoiner: all fine\u202e\x7f\u009b"]}]}]}}}`
	path := written(t, grouped(spec), plainPool)
	for _, as := range []string{"table", "json", "yaml"} {
		code, out, progress := run("plan", "-f", path, "-o", as)
		if i := strings.IndexFunc(out+progress, controls.Steers); code != 0 || i >= 0 || !strings.Contains(out, "PWNED") {
			t.Errorf("%s: exit %d, a control at %d of\n%q", as, code, i, out+progress)
		}
		if as != "json" {
			continue
		}
		var p struct{ Unplaced []struct{ Reasons []string } }
		if err := json.Unmarshal([]byte(out), &p); err != nil || !strings.Contains(p.Unplaced[0].Reasons[0], `\u202e`) {
			t.Errorf("%v, %q", err, p)
		}
	}
}

// Pictures that are drawn over each other hold no control but those that draw.
func TestFramesHoldNoOtherControls(t *testing.T) {
	var b bytes.Buffer
	f := newFrame(&b)
	f.height = func() int { return 10 }
	if err := f.draw("web-\x1b[2J\u202e\r1\n"); err != nil {
		t.Fatal(err)
	}
	f.end()
	if got := b.String(); strings.Count(got, `web-\u001b[2J\u202e\u000d1`) != 2 {
		t.Errorf("%q", got)
	}
}

func FuzzControls(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m \x1b[2J \u202e")
	f.Fuzz(func(t *testing.T, in string) {
		for _, colours := range []bool{false, true} {
			out := controlFilter{colours: colours}.clean(in)
			rest := out
			if colours {
				for i := strings.IndexByte(rest, '\x1b'); i >= 0; i = strings.IndexByte(rest, '\x1b') {
					colour := ownColour.FindString(rest[i:])
					if colour == "" {
						t.Fatalf("%q holds an escape that is no colour", out)
					}
					rest = rest[i+len(colour):]
				}
			}
			if strings.ContainsFunc(rest, func(r rune) bool {
				return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
			}) {
				t.Fatalf("%q becomes %q", in, out)
			}
		}
	})
}

// A namespace whose names come first does not have all of what would help told of its own pods.
func TestNamespacesTakeTurnsToBeHelped(t *testing.T) {
	var groups strings.Builder
	for i := range 7 {
		namespace := map[bool]string{true: "zzz", false: "aaa"}[i == 6]
		fmt.Fprintf(&groups, "- {name: %s-%d, count: 1, pod: {metadata: {namespace: %s}, spec: {%s, nodeSelector: {disk: fast-%d}}}}\n", namespace, i, namespace, small, i)
	}
	code, out, _ := run("plan", "-f", written(t, "name: turns\nnodePools: pools.yaml\ngroups:\n"+groups.String(), plainPool), "-o", "json")
	var p workload.Placement
	if err := json.Unmarshal([]byte(out), &p); code != 0 || err != nil || len(p.Unplaced) != 7 || len(p.Unplaced[6].WouldHelp) == 0 || len(p.Unplaced[0].WouldHelp) == 0 {
		t.Errorf("%v, %d: %s", err, code, out)
	}
}
