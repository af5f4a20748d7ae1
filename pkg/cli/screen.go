package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// terminalOutput holds the writers of a command: results go to out, messages and progress to progress.
type terminalOutput struct {
	out, progress io.Writer
	colour        bool   // out is a terminal
	live          bool   // progress is a terminal, where a line may be written over
	frame         *frame // where a picture is drawn again and again; nil: pictures follow each other
}

func newScreen(out, progress io.Writer) terminalOutput {
	term := terminalOutput{colour: isTerminal(out), live: isTerminal(progress)}
	term.out, term.progress = controlFilter{out, term.colour}, controlFilter{progress, term.live}
	return term
}

// withoutFilter is the writer for what steers the terminal on purpose.
func withoutFilter(w io.Writer) io.Writer {
	if f, ok := w.(controlFilter); ok {
		return f.to
	}
	return w
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// reasonWidth returns the width of reasons in tables, in characters.
func (t terminalOutput) reasonWidth() int {
	columns := 0
	if f, ok := withoutFilter(t.out).(*os.File); ok {
		columns, _, _ = term.GetSize(int(f.Fd())) // 0 where nobody knows
	}
	return fitReasons(columns)
}

// fitReasons is the width that reasons have beside the other columns of a table, on a terminal of so many columns.
func fitReasons(columns int) int {
	const others, least = 34, 40
	if columns <= 0 {
		return width
	}
	return max(least, min(width, columns-others))
}

// writeMessage writes a message.
func (t terminalOutput) writeMessage(format string, args ...any) {
	fmt.Fprintf(t.progress, format+"\n", args...)
}

// paintText colours the text on a terminal, unless the user's environment says NO_COLOR.
func (t terminalOutput) paintText(words string, c ...text.Color) string {
	if !t.colour {
		return words
	}
	return text.Colors(c).Sprint(words)
}

// warningColour is the colour of the first words of a warning.
const warningColour = text.FgYellow

// paintMessage is paint for messages.
func (t terminalOutput) paintMessage(words string, c ...text.Color) string {
	return terminalOutput{colour: t.live}.paintText(words, c...)
}

const (
	quiet   = time.Second            // what takes longer is told about
	redraw  = 200 * time.Millisecond // on a terminal
	tellAll = 10 * time.Second       // elsewhere
)

// withProgress does the work, and tells that it is under way once it takes longer than a second.
func (t terminalOutput) withProgress(what string, work func() error) error {
	done, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		t.tellProgress(what, done)
	}()
	err := work()
	close(done)
	<-told
	return err
}

func (t terminalOutput) tellProgress(what string, done <-chan struct{}) {
	start, pause := time.Now(), quiet
	for {
		select {
		case <-done:
			if t.live && pause == redraw {
				fmt.Fprint(withoutFilter(t.progress), "\r"+text.EraseLine.Sprint())
			}
			return
		case <-time.After(pause):
		}
		took := time.Since(start)
		if t.live {
			pause = redraw
			fmt.Fprintf(withoutFilter(t.progress), "\r%s %c %.0f s", controlFilter{}.clean(what), []rune("⠋⠙⠹⠸⠼⠴⠦⠧")[int(took/redraw)%8], took.Seconds())
			continue
		}
		pause = tellAll
		t.writeMessage("%s, %.0f s so far", what, took.Seconds())
	}
}
