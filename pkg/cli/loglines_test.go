package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"joiner.sh/pkg/decisionlog"
)

// The records of the decision log are found in every form in which people have log lines, and what cannot be read of
// them is told with its line.
func TestLogLinesAsPeopleHaveThem(t *testing.T) {
	line := func(schema int) string {
		return fmt.Sprintf(`{"time":"2026-11-22T10:00:00Z","level":"INFO","msg":"decision","decision":{"schema":%d,"function":"provision","time":"2026-11-22T10:00:00Z"}}`, schema)
	}
	good := line(decisionlog.Schema)
	packed := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	answer := func(v any) string {
		text, err := json.MarshalIndent(v, "", "    ")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, c := range map[string]struct {
		text    string
		records int
		note    string
	}{
		"as they are written":         {good + "\n" + `{"msg":"pass"}` + "\n" + good + "\n", 2, ""},
		"lines of Windows":            {good + "\r\n" + good + "\r\n", 2, ""},
		"aws logs tail":               {"2026-11-22T10:00:00.123000+00:00 2026/11/22/joiner-demo-provision[7]0a1b " + good + "\n", 1, ""},
		"an export to S3":             {packed("2026-11-22T10:00:00.123Z " + good + "\n2026-11-22T10:00:01.000Z START RequestId: 1\n"), 1, ""},
		"aws logs filter-log-events":  {answer(map[string]any{"events": []any{map[string]any{"timestamp": 1, "message": good + "\n"}, map[string]any{"message": "END"}}}), 1, ""},
		"aws logs get-query-results":  {answer(map[string]any{"status": "Complete", "results": []any{[]any{map[string]any{"field": "@timestamp", "value": "x"}, map[string]any{"field": "@message", "value": good}}}}), 1, ""},
		"a table of the console":      {"timestamp,message\n1764000000000,\"" + strings.ReplaceAll(good, `"`, `""`) + "\"\n", 1, ""},
		"JSON that was written anew":  {strings.NewReplacer(`":`, `": `, `,"`, `, "`).Replace(good), 1, ""},
		"cut in the middle":           {good + "\n" + good[:len(good)-20] + "\n" + good, 2, "1 lines of the decision log cannot be read and do not count, line 2 first: are they cut?"},
		"of another version":          {good + "\n" + line(decisionlog.Schema+1), 1, "1 lines of the decision log are of another version"},
		"words about the decision":    {`{"msg":"no","why":"a \"decision\" was made"}`, 0, ""},
		"nothing":                     {"", 0, ""},
		"something else that is JSON": {answer(map[string]any{"kind": "List"}), 0, ""},
	} {
		got, err := logRecords([]byte(c.text))
		if err != nil || len(got.records) != c.records || !strings.Contains(strings.Join(got.notes, "; "), c.note) || c.note == "" && len(got.notes) > 0 {
			t.Errorf("%s: %d records, notes %q, error %v; want %d, %q", name, len(got.records), got.notes, err, c.records, c.note)
		}
	}
}
