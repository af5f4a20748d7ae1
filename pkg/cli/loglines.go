package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/workload/manifest"
)

// decisionLines are the records of the decision log in a file, and what of it cannot be read, in words.
type decisionLines struct {
	records []decisionlog.Record
	notes   []string
}

// logRecords takes the records out of log lines as people get them: JSON as the functions write it, with or without
// something before it on the line; what CloudWatch exports, packed or not; the answers of aws logs filter-log-events and
// get-query-results; a table of the console, with its quotes doubled; or a stored pass.
func logRecords(data []byte) (out decisionLines, err error) {
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		if r, err := decisionlog.DecodeRecord(data); err == nil {
			return decisionLines{records: []decisionlog.Record{r}}, nil
		}
		if data, err = manifest.Gunzip(data); err != nil {
			return out, err
		}
	}
	if messages := answerMessages(data); messages != "" {
		data = []byte(messages)
	}
	broken, other := []int(nil), 0
	n := 0
	for line := range bytes.Lines(data) {
		n++
		record, is, err := logRecord(line)
		switch {
		case !is:
		case err != nil:
			broken = append(broken, n)
		case record.Schema != decisionlog.Schema:
			other++
		default:
			out.records = append(out.records, record)
		}
	}
	if len(broken) > 0 {
		out.notes = append(out.notes, fmt.Sprintf("%d lines of the decision log cannot be read and do not count, line %d first: are they cut?", len(broken), broken[0]))
	}
	if other > 0 {
		out.notes = append(out.notes, fmt.Sprintf("%d lines of the decision log are of another version and do not count: read them with the version of the functions", other))
	}
	slices.SortStableFunc(out.records, func(a, b decisionlog.Record) int { return a.Time.Compare(b.Time) })
	return out, nil
}

// logRecord reads the record of a line, if it is one of the decision log.
func logRecord(line []byte) (r decisionlog.Record, is bool, err error) {
	text := string(line)
	if strings.Contains(text, `""msg"":""decision""`) { // a field of a table
		text = strings.ReplaceAll(text, `""`, `"`)
	}
	i := strings.IndexByte(text, '{')
	if i < 0 || !strings.Contains(text, `"msg":"decision"`) && !strings.Contains(text, `"msg": "decision"`) {
		return r, false, nil
	}
	var l struct {
		Msg      string             `json:"msg"`
		Decision decisionlog.Record `json:"decision"`
	}
	err = json.NewDecoder(strings.NewReader(text[i:])).Decode(&l)
	return l.Decision, err != nil || l.Msg == "decision", err
}

// answerMessages are the messages of an answer of CloudWatch Logs, a line each; empty for other texts.
func answerMessages(data []byte) string {
	text := bytes.TrimLeft(data, " \t\r\n")
	if !bytes.HasPrefix(text, []byte("{")) {
		return ""
	}
	var answer struct {
		Events  []struct{ Message string }
		Results [][]struct{ Field, Value string }
	}
	if json.Unmarshal(text, &answer) != nil {
		return ""
	}
	var out strings.Builder
	for _, e := range answer.Events {
		out.WriteString(strings.TrimRight(e.Message, "\r\n") + "\n")
	}
	for _, row := range answer.Results {
		for _, cell := range row {
			if cell.Field == "@message" {
				out.WriteString(strings.TrimRight(cell.Value, "\r\n") + "\n")
			}
		}
	}
	return out.String()
}
