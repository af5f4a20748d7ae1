package decisionlog_test

import (
	"testing"
	"time"

	"joiner.sh/pkg/decisionlog"
)

// FuzzDecodePass feeds stored passes as the bucket may hold them: one is refused, or can be written again.
func FuzzDecodePass(f *testing.F) {
	p := decisionlog.Pass{Record: decisionlog.Record{Schema: 1, Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), PassStamp: decisionlog.PassStamp{Function: "provision"}},
		Body: decisionlog.Body{Plan: []byte(`{}`)}}
	packed, err := p.Encode()
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{string(packed), `{"schema":1,"function":"provision"}{"saw":{"pods":[null]},"plan":null}`, `{"schema":1}{"saw":{"catalog":{"types":[{}]},"classes":null},"plan":7}`,
		"\x1f\x8b", `{"schema":-1}`, `{"schema":1,"launches":[{"names":null,"hourlyUSD":1e308}]}{}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, recordErr := decisionlog.DecodeRecord(text)
		p, err := decisionlog.DecodePass(text)
		if err == nil && recordErr != nil {
			t.Errorf("a pass whose record is refused: %v", recordErr)
		}
		if err != nil {
			return
		}
		decisionlog.ShadowOf([]decisionlog.Record{r, p.Record}, time.Hour)
		if len(p.Plan) == 0 {
			p.Plan = []byte("null")
		}
		if _, err := p.Encode(); err != nil {
			t.Errorf("it cannot be written again: %v", err)
		}
	})
}
