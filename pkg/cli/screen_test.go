package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

// What takes longer than a second is told, what is quicker is not; nothing is coloured where no terminal is.
func TestWorkThatTakesLongIsTold(t *testing.T) {
	var out, messages bytes.Buffer
	term := newScreen(&out, &messages)
	for _, c := range []struct {
		takes time.Duration
		want  string
	}{{time.Millisecond, ""}, {quiet + 200*time.Millisecond, "counting sheep, 1 s so far\n"}} {
		messages.Reset()
		timer := time.NewTimer(c.takes)
		err := term.withProgress("counting sheep", func() error {
			<-timer.C
			return nil
		})
		if err != nil || messages.String() != c.want || out.Len() > 0 {
			t.Errorf("%s: %v, says %q, want %q; prints %q", c.takes, err, messages.String(), c.want, out.String())
		}
	}
	if got := term.paintText("red", text.FgRed) + term.paintMessage("red", text.FgRed); got != "redred" {
		t.Errorf("without a terminal: %q", got)
	}
	term.live = true
	messages.Reset()
	timer := time.NewTimer(quiet + 3*redraw)
	_ = term.withProgress("counting sheep", func() error { // it cannot fail
		<-timer.C
		return nil
	})
	if got := messages.String(); strings.Count(got, "\rcounting sheep ") < 2 || strings.Contains(got, "\n") || !strings.HasSuffix(got, text.EraseLine.Sprint()) {
		t.Errorf("on a terminal one line is written over and taken away: %q", got)
	}
}

// Completion is there for the shells, and knows commands, what can be explained, and the forms of output.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, out, progress := run("completion", shell); code != 0 || !strings.Contains(out, "joiner") {
			t.Errorf("%s: exit %d, %s", shell, code, progress)
		}
	}
	for asked, want := range map[string]string{
		"":                   "convert\t",
		"explain ":           "pod\nnode\nnodepool\n",
		"plan -o ":           "table\njson\nyaml\n",
		"convert --output j": "json\n",
	} {
		args := append([]string{"__complete"}, strings.Split(asked, " ")...)
		if code, out, progress := run(args...); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%q: exit %d, %s%s", asked, code, out, progress)
		}
	}
}

// Reasons take what a terminal has beside the other columns, and no more than is pleasant to read.
func TestReasonsFitTheTerminal(t *testing.T) {
	for columns, want := range map[int]int{0: 110, 20: 40, 80: 46, 120: 86, 300: 110} {
		if got := fitReasons(columns); got != want {
			t.Errorf("%d columns: %d, want %d", columns, got, want)
		}
	}
}
