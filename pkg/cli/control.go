package cli

import (
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"joiner.sh/pkg/model/controls"
)

// controlFilter writes text for a terminal or a file. Characters that would steer a terminal or turn the direction of
// writing are written as \u001b and the like: names, labels and messages come from whoever may create an object.
type controlFilter struct {
	to      io.Writer
	colours bool // the colours that this program gives pass
}

// ownColour matches the escape codes with which this program begins and ends colours and bold text.
var ownColour = regexp.MustCompile(`^\x1b\[(0|1|3[1-7]|9[0-7])(;(0|1|3[1-7]|9[0-7]))*m`)

// Write writes all of the text. A character may not be split over two calls.
func (f controlFilter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(f.to, f.clean(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// clean is the text with its controls spelt out.
func (f controlFilter) clean(text string) string {
	i := strings.IndexFunc(text, new(controls.Reader).Steers)
	if i < 0 && utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	var read controls.Reader
	for i := 0; i < len(text); {
		if colour := ""; f.colours && text[i] == '\x1b' {
			if colour = ownColour.FindString(text[i:]); colour != "" {
				out.WriteString(colour)
				i += len(colour)
				continue
			}
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if i += size; read.Steers(r) {
			out.WriteString(controls.Spell(r))
			continue
		}
		out.WriteRune(r) // what is no UTF-8 becomes the sign for it
	}
	return out.String()
}
