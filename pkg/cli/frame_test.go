package cli

import (
	"bytes"
	"strings"
	"testing"

	"joiner.sh/pkg/cli/status"
)

// screenOf plays what a terminal of some lines shows after a text, with the few sequences that a frame uses.
func screenOf(t *testing.T, text string, height int) []string {
	t.Helper()
	screen := make([][]rune, height)
	row, column := 0, 0
	for text != "" {
		switch {
		case strings.HasPrefix(text, toTop):
			row, column, text = 0, 0, text[len(toTop):]
		case strings.HasPrefix(text, eraseRight):
			screen[row], text = screen[row][:column], text[len(eraseRight):]
		case strings.HasPrefix(text, eraseBelow):
			for r := row + 1; r < height; r++ {
				screen[r] = nil
			}
			screen[row], text = screen[row][:column], text[len(eraseBelow):]
		case strings.HasPrefix(text, "\r\n"):
			if row++; row == height {
				t.Fatal("the terminal scrolls")
			}
			column, text = 0, text[2:]
		default:
			r := []rune(text)[0]
			screen[row] = append(append(screen[row][:column:column], r), screen[row][min(column+1, len(screen[row])):]...)
			column, text = column+1, text[len(string(r)):]
		}
	}
	var out []string
	for _, line := range screen {
		out = append(out, string(line))
	}
	return out
}

func TestFrameDrawsInPlace(t *testing.T) {
	var out bytes.Buffer
	f := &frame{out: &out, height: func() int { return 4 }}
	for _, text := range []string{"long first line\nsecond\nthird\n", "short\nbar ██░\n", "1\n2\n3\n4\n5\n6\n", "end\n"} {
		if err := f.draw(text); err != nil {
			t.Fatal(err)
		}
		drawn := strings.TrimPrefix(out.String(), enterFrame)
		want := strings.Split(text, "\n")
		if len(want) > 5 {
			want = []string{"1", "2", "3", "3 more lines: a taller window or --html shows them"}
		}
		for i, line := range screenOf(t, drawn, 4) {
			if i < len(want) && line != want[i] || i >= len(want) && line != "" {
				t.Errorf("after %q line %d is %q", text, i, line)
			}
		}
	}
	if n := strings.Count(out.String(), enterFrame); n != 1 {
		t.Errorf("the terminal was taken over %d times, want once", n)
	}
	out.Reset()
	f.end()
	f.end()
	if want := leaveFrame + "end\n"; out.String() != want {
		t.Errorf("at the end %q, want %q once", out.String(), want)
	}
}

func TestFrameThatDrewNothingLeavesTheTerminalAlone(t *testing.T) {
	var out bytes.Buffer
	newFrame(&out).end()
	if out.Len() > 0 {
		t.Errorf("wrote %q, want nothing", out.String())
	}
}

// A picture that is drawn again and again lists instance types where each node would leave no room for anything else;
// a table that is written once lists each node.
func TestWatchedStatusSumsUpLargeNodePools(t *testing.T) {
	p := status.NodePool{Name: "general"}
	for range status.MostUnfolded {
		p.Nodes = append(p.Nodes, status.Node{Name: "node-a", Type: "m5.large", Phase: "ready"})
	}
	watched := terminalOutput{frame: newFrame(nil)}
	if got := poolTable(watched, p); !strings.Contains(got, "node-a") {
		t.Errorf("%d nodes are not listed:\n%s", len(p.Nodes), got)
	}
	p.Nodes = append(p.Nodes, status.Node{Name: "node-b", Type: "c5.large", Phase: "ready", HourlyUSD: 1})
	if got := poolTable(watched, p); strings.Contains(got, "node-") || !strings.Contains(got, "100 ready") {
		t.Errorf("%d nodes are not summed up:\n%s", len(p.Nodes), got)
	}
	if got := poolTable(terminalOutput{}, p); !strings.Contains(got, "node-b") {
		t.Errorf("a table that is written once lacks a node:\n%s", got)
	}
}

func TestBoundsOfEvery(t *testing.T) {
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	for _, every := range []string{"999ms", "1h1s", "-5s"} {
		if code, _, said := run("status", "--watch", "--every="+every); code != exitUnused || !strings.Contains(said, "--every is") {
			t.Errorf("--every %s: exit %d, %s", every, code, said)
		}
	}
	for _, every := range []string{"1s", "1h"} {
		if _, _, said := run("status", "--watch", "--every="+every); strings.Contains(said, "--every is") {
			t.Errorf("--every %s is refused: %s", every, said)
		}
	}
}
