package nodeclass

import (
	"strings"
	"testing"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
)

// FuzzLearned feeds what an EC2NodeClass may carry in our annotations, of these images and spec: what is believed can
// be, and what nobody can read is forgotten.
func FuzzLearned(f *testing.F) {
	for _, text := range []string{`{"of":"OF","types":{"m5.large":{"mib":-1,"seen":"x"},"":{"mib":9223372036854775807}}}`, `{"of":"OF","types":null}`,
		`{"of":"OF","seen":[{"type":"m5.large","has":[{"Name":"cpu","Count":-5}],"at":"9999-12-31T23:59:59Z"}]}`, `{"of":"OF","reason":"x","at":"2026-01-01T00:00:00Z"}`, `[]`, `null`} {
		f.Add(text)
	}
	now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		c := &awsv1.EC2NodeClass{}
		of := func(hash string) string { return strings.ReplaceAll(text, "OF", hash) }
		c.Annotations = map[string]string{v1.AnnotationObservedMemory: of(imagesHash(c)), v1.AnnotationObservedShortfalls: of(recallShortfalls(c).Of),
			v1.AnnotationDryRunResult: of(rehearsalHash(c))}
		ListLearned(c)
		WithoutLearned(c, "m5.large")
		DescribeClass(c)
		RecallVerdict(c, time.Time{}, now)
		if out, _ := ObserveShortfalls(c, nil, nil, now); len(out) > len(text)*3+1000 {
			t.Errorf("%d bytes are kept of %d", len(out), len(text))
		}
		ObserveMemory(c, nil, nil, now)
	})
}
