package settings

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
)

// mostFileBytes bounds a file of settings.
const mostFileBytes = 1 << 20

// fileForm says what a file of settings holds.
const fileForm = `want one JSON object, such as {"clusterName": "prod"}`

// DecodeFile reads the object of settings that a file holds, in UTF-8, or in UTF-16 with its mark as PowerShell writes
// it. Its error names file and line, and what to do.
func DecodeFile(name string, text []byte) (map[string]any, error) {
	if len(text) > mostFileBytes {
		return nil, fmt.Errorf("read settings of %s: it has more than %d KiB: %s", name, mostFileBytes>>10, fileForm)
	}
	plain := withoutMark(text)
	bad := func(offset int64, format string, args ...any) error {
		line := 1 + bytes.Count(plain[:min(max(0, int(offset)), len(plain))], []byte("\n"))
		return fmt.Errorf("read settings of %s: line %d: %s", name, line, fmt.Sprintf(format, args...))
	}
	if len(bytes.TrimSpace(plain)) == 0 {
		return nil, fmt.Errorf("read settings of %s: it is empty: %s", name, fileForm)
	}
	d := json.NewDecoder(bytes.NewReader(plain))
	var file map[string]any
	if err := d.Decode(&file); err != nil {
		offset, hint := int64(len(plain)), fileForm
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			offset, hint = syntax.Offset-1, syntaxHint(plain, syntax.Offset)
		} else if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, bad(0, "it holds a JSON %s: %s", wrong.Value, fileForm)
		} else if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, bad(offset, "it ends within the object; is it cut? %s", fileForm)
		}
		return nil, bad(offset, "%v; %s", err, hint)
	}
	if file == nil {
		return nil, bad(0, "it holds null: %s", fileForm)
	}
	end := d.InputOffset()
	if rest := bytes.TrimSpace(plain[end:]); len(rest) > 0 {
		return nil, bad(end+int64(bytes.Index(plain[end:], rest[:1])), "something follows the object: %s", fileForm)
	}
	if key, at := repeatedKey(plain); key != "" {
		return nil, bad(at, "%s stands twice: remove one", key)
	}
	return file, nil
}

// withoutMark is the text in UTF-8, without the mark that says how it is written.
func withoutMark(text []byte) []byte {
	big := bytes.HasPrefix(text, []byte{0xfe, 0xff})
	if !big && !bytes.HasPrefix(text, []byte{0xff, 0xfe}) {
		return bytes.TrimPrefix(text, []byte("\ufeff"))
	}
	var units []uint16
	for pair := range slices.Chunk(text[2:], 2) {
		if len(pair) == 1 {
			pair = []byte{pair[0], pair[0]} // it is cut: no reader takes what comes of it
		}
		order := binary.ByteOrder(binary.LittleEndian)
		if big {
			order = binary.BigEndian
		}
		units = append(units, order.Uint16(pair))
	}
	return []byte(string(utf16.Decode(units)))
}

// syntaxHint says what people write in JSON that is none.
func syntaxHint(text []byte, offset int64) string {
	at := min(max(0, int(offset)-1), len(text)-1)
	switch before := bytes.TrimRight(text[:at], " \t\r\n"); {
	case text[at] == '/' || text[at] == '#':
		return "JSON has no comments: remove it"
	case bytes.HasSuffix(before, []byte(",")) && (text[at] == '}' || text[at] == ']'):
		return "remove the comma before it"
	case text[at] == '\'':
		return `JSON wants the quotes "`
	case bytes.ContainsRune(before, '{') && text[at] == '"':
		return "a comma is missing before it"
	}
	return fileForm
}

// repeatedKey is a key that an object of the text has twice, and where the second stands.
func repeatedKey(text []byte) (key string, offset int64) {
	d := json.NewDecoder(bytes.NewReader(text))
	var seen []map[string]bool // by depth; nil within a list
	name := false              // the next text is a key
	for {
		token, err := d.Token()
		if err != nil {
			return "", 0
		}
		switch delim, _ := token.(json.Delim); {
		case delim == '{' || delim == '[':
			seen = append(seen, map[json.Delim]map[string]bool{'{': {}}[delim])
			name = delim == '{'
			continue
		case delim != 0:
			seen = seen[:len(seen)-1]
		case name:
			k, _ := token.(string)
			if seen[len(seen)-1][k] {
				return strings.TrimSpace(k), d.InputOffset() - 1
			}
			seen[len(seen)-1][k], name = true, false
			continue
		}
		name = len(seen) > 0 && seen[len(seen)-1] != nil
	}
}
