// Package controls knows the characters that a terminal obeys in place of showing them, and spells them out. Names,
// labels and messages come from whoever may create an object; whoever reads them in a table or a log must not have a
// terminal that does what they say. Start with Steers.
package controls

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Steers reports whether a terminal obeys the character in place of showing it, or shows nothing: controls but for tabs
// and new lines, those that turn the direction of writing, and those of no width, with which a name looks like another.
func Steers(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' ||
		unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point) || r == '\u2028' || r == '\u2029'
}

// mostMarks caps the marks that one letter may carry: more are drawn over the lines above, and no script needs as many.
const mostMarks = 4

// Reader is a text that is read from its beginning. The zero value is one.
type Reader struct{ marks int }

// Steers reports whether the next character steers, or is one mark too many on a letter.
func (reader *Reader) Steers(r rune) bool {
	if reader.marks++; !unicode.IsMark(r) {
		reader.marks = 0
	}
	return Steers(r) || reader.marks > mostMarks
}

// Spell returns the character as it is spelt out: \u001b and the like, which JSON reads as the character.
func Spell(r rune) string {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// Escape returns the text with the characters spelt out that steer. What is no UTF-8 becomes the sign for it.
func Escape(text string) string {
	if strings.IndexFunc(text, new(Reader).Steers) < 0 && utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	var read Reader
	for _, r := range text {
		if read.Steers(r) {
			out.WriteString(Spell(r))
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// JSONLines is a writer of lines of JSON that spells out what steers. JSON has such characters in strings alone, where
// they mean the same spelt out. A character may not be split over two calls.
type JSONLines struct{ To io.Writer }

// Write writes all of the text.
func (l JSONLines) Write(text []byte) (int, error) {
	if _, err := io.WriteString(l.To, Escape(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
