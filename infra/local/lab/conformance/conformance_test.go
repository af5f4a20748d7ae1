package conformance

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

func options() (python *string, rewrite *bool) {
	return flag.String("moto", "", "the Python of the virtual environment that has moto; empty: ask the emulator alone"),
		flag.Bool("rewrite", false, "write testdata/answers anew; needs -moto")
}

var python, rewrite = options()

func questions() []question {
	return slices.Concat(networkQuestions(), offeringQuestions(), imageQuestions(), templateQuestions(), launchQuestions(), instanceQuestions(), powerQuestions(), endQuestions(), closingQuestions(),
		iamQuestions(), otherQuestions())
}

// pair is what the two answer to a question.
type pair struct{ emulator, moto string }

func (p pair) differ() bool { return p.emulator != p.moto }

const file = "testdata/answers"

// The emulator and moto answer as testdata says, and where they differ the documentation is quoted. Without -moto only
// the emulator is asked.
func TestAnswers(t *testing.T) {
	want := read(t)
	e := emulator(t)
	var m *account
	if *python != "" {
		m = moto(t, *python)
	}
	got, seen := map[string]pair{}, 0
	for _, q := range questions() {
		p := pair{emulator: q.ask(e), moto: want[q.name].moto}
		if m != nil {
			p.moto = q.ask(m)
		}
		if _, twice := got[q.name]; twice {
			t.Errorf("%s is asked twice", q.name)
		}
		got[q.name] = p
		if p != want[q.name] && !*rewrite {
			t.Errorf("%s\nemulator: %s\n    moto: %s\nin %s: %s\n    moto: %s", q.name, p.emulator, p.moto, file, want[q.name].emulator, want[q.name].moto)
		}
		if p.differ() {
			seen++
		}
	}
	if *rewrite && m != nil {
		write(t, got)
	}
	for name := range want {
		if _, ok := got[name]; !ok && !*rewrite {
			t.Errorf("%s is in %s and not asked", name, file)
		}
	}
	judged(t, got)
	t.Logf("%d questions, %d answered differently", len(got), seen)
}

// judged wants a word of the documentation for every disagreement, and no word too many.
func judged(t *testing.T, got map[string]pair) {
	table := map[string]disagreement{}
	for _, d := range disagreements() {
		for _, name := range d.about {
			if _, twice := table[name]; twice {
				t.Errorf("%s is judged twice", name)
			}
			table[name] = d
			p, ok := got[name]
			switch {
			case !ok || !p.differ():
				t.Errorf("%s is judged, but there is no disagreement", name)
			case d.right != "emulator" && d.right != "moto" && d.right != "both":
				t.Errorf("%s: %q is right?", name, d.right)
			}
		}
		if d.says == "" || !strings.HasPrefix(d.source, "https://docs.aws.amazon.com/") && d.source != "nothing" {
			t.Errorf("%v: what is documented, and where?", d.about)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := table[name]; got[name].differ() && !ok {
			t.Errorf("%s: the emulator says %s, moto %s: look up who is right, and enter it in disagreements", name, got[name].emulator, got[name].moto)
		}
	}
}

func write(t *testing.T, all map[string]pair) {
	var b strings.Builder
	for _, q := range questions() {
		p := all[q.name]
		if p.differ() {
			fmt.Fprintf(&b, "%s\n  emulator: %s\n  moto:     %s\n", q.name, p.emulator, p.moto)
		} else {
			fmt.Fprintf(&b, "%s\n  %s\n", q.name, p.emulator)
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T) map[string]pair {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out, name := map[string]pair{}, ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		said, indented := strings.CutPrefix(line, "  ")
		p := out[name]
		switch e, of := strings.CutPrefix(said, "emulator: "); {
		case !indented:
			name = line
			continue
		case of:
			p.emulator = e
		case strings.HasPrefix(said, "moto:     "):
			p.moto = strings.TrimPrefix(said, "moto:     ")
		default:
			p = pair{said, said}
		}
		out[name] = p
	}
	return out
}
