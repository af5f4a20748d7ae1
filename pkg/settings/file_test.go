package settings

import (
	"strings"
	"testing"
)

// Files as editors, shells and people write them are read, or refused by name and line with what to do.
func TestDecodeFile(t *testing.T) {
	utf16 := func(text string, big bool) string {
		out := []byte{0xff, 0xfe}
		if big {
			out = []byte{0xfe, 0xff}
		}
		for _, b := range []byte(text) {
			if big {
				out = append(out, 0, b)
			} else {
				out = append(out, b, 0)
			}
		}
		return string(out)
	}
	const good = "{\r\n  \"clusterName\": \"prod\",\r\n  \"tags\": {\"a\": \"1\"}, \"list\": [{\"a\": 1}, {\"a\": 2}]\r\n}\r\n"
	for name, c := range map[string]struct{ text, wrong string }{
		"lines of Windows":          {good, ""},
		"a mark of UTF-8":           {"\ufeff" + good, ""},
		"UTF-16, as PowerShell has": {utf16(good, false), ""},
		"UTF-16, big end first":     {utf16(good, true), ""},
		"nothing":                   {"", "settings.json: it is empty: want one JSON object"},
		"blank lines":               {"\n \n", "settings.json: it is empty"},
		"a list":                    {"[]", "line 1: it holds a JSON array: want one JSON object"},
		"a text":                    {"\"prod\"", "line 1: it holds a JSON string"},
		"null":                      {"null", "line 1: it holds null"},
		"YAML":                      {"clusterName: prod\n", "line 1: invalid character 'c' looking for beginning of value; want one JSON object"},
		"cut in the middle":         {"{\n  \"clusterName\": \"prod\",\n  \"vpcID", "line 3: it ends within the object; is it cut?"},
		"a comment":                 {"{\n  // ours\n  \"clusterName\": \"prod\"\n}", "line 2: invalid character '/' looking for beginning of object key string; JSON has no comments: remove it"},
		"a comma at the end":        {"{\n  \"clusterName\": \"prod\",\n}", "line 3: invalid character '}' looking for beginning of object key string; remove the comma before it"},
		"a comma at a list's end":   {"{\n  \"subnetIDs\": [\"a\",\n  ]\n}", "line 3: invalid character ']' looking for beginning of value; remove the comma before it"},
		"a comma that is missing":   {"{\n  \"clusterName\": \"prod\"\n  \"mode\": \"act\"\n}", "line 3: invalid character '\"' after object key:value pair; a comma is missing before it"},
		"other quotes":              {"{'clusterName': 'prod'}", "line 1: invalid character '\\'' looking for beginning of object key string; JSON wants the quotes \""},
		"two objects":               {"{\"a\": 1}\n\n{\"b\": 2}", "line 3: something follows the object"},
		"a key twice":               {"{\n  \"mode\": \"act\",\n  \"clusterName\": \"prod\",\n  \"mode\": \"observe\"\n}", "line 4: mode stands twice: remove one"},
		"a key twice further in":    {"{\"tags\": {\"a\": 1,\n\"a\": 2}}", "line 2: a stands twice"},
		"a program":                 {"\x7fELF\x02\x01", "line 1: invalid character '\\x7f' looking for beginning of value"},
		"very much":                 {strings.Repeat(" ", mostFileBytes+1), "it has more than 1024 KiB"},
	} {
		got, err := DecodeFile("settings.json", []byte(c.text))
		if c.wrong == "" {
			if err != nil || got["clusterName"] != "prod" {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.wrong)
		}
	}
}
