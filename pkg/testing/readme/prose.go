package readme

import (
	"fmt"
	"regexp"
	"strings"
)

// Limits of what people read.
const (
	MaxSentenceWords = 30
	MaxColumns       = 120
)

// Words counts the words of a page as wc does, so that the bars of a table count too.
func Words(text string) int { return len(strings.Fields(text)) }

// LongSentences returns the sentences of a page that have more than MaxSentenceWords words. A paragraph, an item of a
// list and a cell of a table each begin a sentence. Blocks of code, headings and comments have none; a span of code is
// one word.
func LongSentences(text string) []string {
	end := regexp.MustCompile(`[.!?]["')*]*(\s+|$)`)
	var long []string
	for _, part := range proseParts(text) {
		for _, sentence := range end.Split(part, -1) {
			if n := len(strings.Fields(sentence)); n > MaxSentenceWords {
				long = append(long, fmt.Sprintf("%d words: %s", n, sentence))
			}
		}
	}
	return long
}

// WideLines returns the lines of a page beyond MaxColumns, tables, blocks of code and pictures aside.
func WideLines(text string) []string {
	var wide []string
	for _, line := range proseLines(text) {
		if len([]rune(line)) > MaxColumns && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "![") {
			wide = append(wide, line)
		}
	}
	return wide
}

// proseParts are paragraphs, items of lists and cells of tables, spans of code and links being put into words.
func proseParts(text string) []string {
	item := regexp.MustCompile(`^\s*([-*]|\d+\.) `)
	var parts []string
	open := false
	for _, line := range proseLines(text) {
		switch {
		case strings.HasPrefix(line, "|"):
			parts, open = append(parts, strings.Split(inWords(line), "|")...), false
		case line == "" || strings.HasPrefix(line, "#"):
			open = false
		case open && !item.MatchString(line):
			parts[len(parts)-1] += "\n" + line
		default:
			parts, open = append(parts, item.ReplaceAllString(line, "")), true
		}
	}
	for i, p := range parts {
		parts[i] = inWords(p)
	}
	return parts
}

// inWords makes one word of each span of code, and the words of each link stand for it.
func inWords(text string) string {
	text = regexp.MustCompile("`[^`]*`").ReplaceAllString(text, "code")
	return regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(text, "$1")
}

// proseLines are the lines of a page without its blocks of code and comments.
func proseLines(text string) []string {
	text = regexp.MustCompile(`(?s)<!--.*?-->`).ReplaceAllString(text, "")
	var lines []string
	fenced, indented := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n ")
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		// A block of code follows an empty line; what is indented otherwise goes on with an item of a list.
		last := len(lines) == 0 || lines[len(lines)-1] == ""
		indented = strings.HasPrefix(line, "    ") && (indented || last)
		if fenced || indented {
			continue
		}
		lines = append(lines, line)
	}
	return lines
}
