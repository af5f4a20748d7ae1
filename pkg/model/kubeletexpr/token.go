package kubeletexpr

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

type tokenKind int

const (
	endToken tokenKind = iota
	nameToken
	intToken
	doubleToken
	textToken
	symbolToken
)

// token is a piece of an expression. Text is what was written, of a text what it says.
type token struct {
	kind tokenKind
	text string
	at   int // byte
}

// scanTokens takes an expression apart. The last token is an endToken.
func scanTokens(text string) ([]token, error) {
	var out []token
	for at := 0; ; {
		for at < len(text) && strings.IndexByte(" \t\r\n\f", text[at]) >= 0 {
			at++
		}
		if strings.HasPrefix(text[at:], "//") {
			line, _, _ := strings.Cut(text[at:], "\n")
			at += len(line)
			continue
		}
		if at == len(text) {
			return append(out, token{kind: endToken, at: at}), nil
		}
		t, size, err := scanToken(text[at:])
		if err != nil {
			return nil, fmt.Errorf("at character %d: %w", at+1, err)
		}
		t.at = at
		out, at = append(out, t), at+size
	}
}

func scanToken(rest string) (t token, size int, err error) {
	switch c := rest[0]; {
	case isDigit(c), c == '.' && len(rest) > 1 && isDigit(rest[1]):
		return scanNumber(rest)
	case isLetter(c):
		for size < len(rest) && (isLetter(rest[size]) || isDigit(rest[size])) {
			size++
		}
		if size < len(rest) && (rest[size] == '"' || rest[size] == '\'') {
			return t, 0, fmt.Errorf("texts with the prefix %s are not known here", rest[:size])
		}
		return token{kind: nameToken, text: rest[:size]}, size, nil
	case c == '"' || c == '\'':
		return scanText(rest)
	}
	for _, symbol := range []string{"==", "!=", "<=", ">=", "&&", "||"} {
		if strings.HasPrefix(rest, symbol) {
			return token{kind: symbolToken, text: symbol}, len(symbol), nil
		}
	}
	if strings.IndexByte("<>+-*/%!?:(),.[]", rest[0]) >= 0 {
		return token{kind: symbolToken, text: rest[:1]}, 1, nil
	}
	return t, 0, fmt.Errorf("%q is not known here", rest[:1])
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// scanNumber reads 12, 0x1f, 1.5, .5, 1e3.
func scanNumber(rest string) (t token, size int, err error) {
	t.kind = intToken
	digits := func() {
		for size < len(rest) && isDigit(rest[size]) {
			size++
		}
	}
	if strings.HasPrefix(rest, "0x") || strings.HasPrefix(rest, "0X") {
		size = len("0x")
		for size < len(rest) && strings.IndexByte("0123456789abcdefABCDEF", rest[size]) >= 0 {
			size++
		}
	} else {
		digits()
		if size+1 < len(rest) && rest[size] == '.' && isDigit(rest[size+1]) {
			t.kind = doubleToken
			size++
			digits()
		}
		if exponent := exponentSize(rest[size:]); exponent > 0 {
			t.kind, size = doubleToken, size+exponent
		}
	}
	if size < len(rest) && (isLetter(rest[size]) || isDigit(rest[size])) {
		return t, 0, fmt.Errorf("%q is no number that is known here", rest[:size+1])
	}
	t.text = rest[:size]
	return t, size, nil
}

// exponentSize is how long the exponent is with which the text begins, 0 for none.
func exponentSize(rest string) int {
	if rest == "" || rest[0] != 'e' && rest[0] != 'E' {
		return 0
	}
	size := 1
	if size < len(rest) && (rest[size] == '+' || rest[size] == '-') {
		size++
	}
	begin := size
	for size < len(rest) && isDigit(rest[size]) {
		size++
	}
	if size == begin {
		return 0
	}
	return size
}

// scanText reads a text in single or double quotation marks.
func scanText(rest string) (t token, size int, err error) {
	mark := rest[:1]
	if strings.HasPrefix(rest, mark+mark+mark) {
		return t, 0, errors.New("texts in three quotation marks are not known here")
	}
	var out strings.Builder
	for size = 1; size < len(rest); {
		switch c := rest[size]; {
		case c == mark[0]:
			return token{kind: textToken, text: out.String()}, size + 1, nil
		case c == '\n' || c == '\r':
			return t, 0, errors.New("a text goes over the end of the line")
		case c != '\\':
			out.WriteByte(c)
			size++
			continue
		}
		value, _, tail, err := strconv.UnquoteChar(rest[size:], mark[0])
		if err != nil {
			return t, 0, errors.New("a text has an escape that is not known here")
		}
		out.WriteRune(value)
		size = len(rest) - len(tail)
	}
	return t, 0, errors.New("a text has no end")
}
