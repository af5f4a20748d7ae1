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
	s := terminalOutput{colour: isTerminal(out), live: isTerminal(progress)}
	s.out, s.progress = controlFilter{out, s.colour}, controlFilter{progress, s.live}
	return s
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
func (s terminalOutput) reasonWidth() int {
	columns := 0
	if f, ok := withoutFilter(s.out).(*os.File); ok {
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
func (s terminalOutput) writeMessage(format string, args ...any) {
	fmt.Fprintf(s.progress, format+"\n", args...)
}

// paintText colours the text on a terminal, unless the user's environment says NO_COLOR.
func (s terminalOutput) paintText(words string, c ...text.Color) string {
	if !s.colour {
		return words
	}
	return text.Colors(c).Sprint(words)
}

// warningColour is the colour of the first words of a warning.
const warningColour = text.FgYellow

// paintMessage is paint for messages.
func (s terminalOutput) paintMessage(words string, c ...text.Color) string {
	return terminalOutput{colour: s.live}.paintText(words, c...)
}

const (
	quiet   = time.Second            // what takes longer is told about
	redraw  = 200 * time.Millisecond // on a terminal
	tellAll = 10 * time.Second       // elsewhere
)

// withProgress does the work, and tells that it is under way once it takes longer than a second.
func (s terminalOutput) withProgress(what string, work func() error) error {
	done, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		s.tellProgress(what, done)
	}()
	err := work()
	close(done)
	<-told
	return err
}

func (s terminalOutput) tellProgress(what string, done <-chan struct{}) {
	start, pause := time.Now(), quiet
	for {
		t := time.NewTimer(pause)
		select {
		case <-done:
			t.Stop()
			if s.live && pause == redraw {
				fmt.Fprint(withoutFilter(s.progress), "\r"+text.EraseLine.Sprint())
			}
			return
		case <-t.C:
		}
		took := time.Since(start)
		if s.live {
			pause = redraw
			fmt.Fprintf(withoutFilter(s.progress), "\r%s %c %.0f s", controlFilter{}.clean(what), []rune("⠋⠙⠹⠸⠼⠴⠦⠧")[int(took/redraw)%8], took.Seconds())
			continue
		}
		pause = tellAll
		s.writeMessage("%s, %.0f s so far", what, took.Seconds())
	}
}
