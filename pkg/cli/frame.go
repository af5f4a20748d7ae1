package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Sequences that every terminal of today understands.
const (
	enterFrame = "\x1b[?1049h\x1b[?25l\x1b[?7l" // another screen, no cursor, long lines are cut
	leaveFrame = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	toTop      = "\x1b[H"
	eraseRight = "\x1b[K"
	eraseBelow = "\x1b[J"
)

// frame draws pictures over each other on a terminal, without flicker: lines are written over, nothing is cleared
// before. It uses the terminal's other screen, so that what was there comes back.
type frame struct {
	out    io.Writer
	height func() int // lines of the terminal, 0 if nobody knows
	last   string
}

// newFrame takes over the terminal at the first drawing.
func newFrame(out io.Writer) *frame {
	return &frame{out: out, height: func() int {
		f, ok := out.(*os.File)
		if !ok {
			return 0
		}
		_, height, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0
		}
		return height
	}}
}

// draw shows the text in place of the one before. What is taller than the terminal is cut, and says so.
func (f *frame) draw(text string) error {
	var b strings.Builder
	if f.last == "" {
		b.WriteString(enterFrame)
	}
	text = controlFilter{colours: true}.clean(text)
	f.last = text
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if height := f.height(); height > 1 && len(lines) > height {
		cut := len(lines) - height + 1
		lines = append(lines[:height-1:height-1], fmt.Sprintf("%d more lines: a taller window or --html shows them", cut))
	}
	b.WriteString(toTop + strings.Join(lines, eraseRight+"\r\n") + eraseRight + eraseBelow)
	if _, err := io.WriteString(f.out, b.String()); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// end gives the terminal back and leaves the last picture on it.
func (f *frame) end() {
	if f.last != "" {
		fmt.Fprint(f.out, leaveFrame+f.last)
		f.last = ""
	}
}
