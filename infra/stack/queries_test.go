package stack_test

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"joiner.sh/pkg/decisionlog"
)

// Passes may be kept in the bucket by those that decide whatever is wanted of the decision log, because one in which
// something failed is; not for ever.
func TestTheDecisionLogIsAsTheSettingsSay(t *testing.T) {
	for _, mode := range []string{"off", "log", "store"} {
		tmpl := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "decisionLog": mode, "logRetentionDays": 30}))
		for _, f := range []string{"Provision", "Disrupt", "Lifecycle"} {
			if got := strings.Contains(tmpl.permissions(f), "/passes/*"); got != (f != "Lifecycle") {
				t.Errorf("decisionLog %s: %s may store passes: %t\n%s", mode, f, got, tmpl.permissions(f))
			}
		}
		found := false
		tmpl.each("AWS::S3::Bucket", func(_ string, p map[string]any) {
			found = strings.Contains(text(p), "passes/") && strings.Contains(text(p), "30")
		})
		if !found {
			t.Error("stored passes do not end after 30 days")
		}
	}
}

// The questions that the stack brings ask for fields that log lines have, in words that Logs Insights knows, and of log
// groups that there are.
func TestQueriesAskForWhatTheLogHas(t *testing.T) {
	tmpl := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t)}))
	groups := map[string]bool{}
	tmpl.each("AWS::Logs::LogGroup", func(id string, _ map[string]any) { groups[id] = true })
	n := 0
	tmpl.each("AWS::Logs::QueryDefinition", func(id string, p map[string]any) {
		n++
		of, _ := p["LogGroupNames"].([]any)
		for _, g := range of {
			if !groups[text(g)] { // a reference, or CloudFormation might make the query first
				t.Errorf("%s asks %s, which is none of %v", id, text(g), groups)
			}
		}
		if problem := wrongQuery(p["QueryString"].(string)); problem != "" || len(of) == 0 {
			t.Errorf("%s of %d groups: %s", id, len(of), problem)
		}
	})
	if n < 6 {
		t.Errorf("%d queries", n)
	}
	for query, want := range map[string]string{
		`filter msg = "decision" | stats count() as n by decision.launches.0.typ`: "no line has the field decision.launches.0.typ",
		`filter msg = "decision" | stats median(decision.gap)`:                    "no line has the field median",
		`fields @timestamp | where msg = "decision"`:                              "where is no command",
		`fields @timestamp | sort pods`:                                           "no line has the field pods",
	} {
		if got := wrongQuery(query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// wrongQuery says what of a query Logs Insights would not understand or find nothing for.
func wrongQuery(query string) string {
	known := map[string]bool{}
	for _, w := range strings.Fields("as by desc asc and or not in like count sum avg min max bin ispresent @timestamp @log @message " +
		// the fields of slog, and of the line about a launch
		"time level msg error claim instance type zone capacityType") {
		known[w] = true
	}
	plain := regexp.MustCompile(`"[^"]*"|[ (][0-9]+[a-z]*`).ReplaceAllString(query, " ")
	for _, m := range regexp.MustCompile(`\bas (\w+)`).FindAllStringSubmatch(plain, -1) {
		known[m[1]] = true
	}
	for command := range strings.SplitSeq(plain, "|") {
		word, rest, _ := strings.Cut(strings.TrimSpace(command), " ")
		if !slices.Contains([]string{"fields", "filter", "stats", "sort", "limit"}, word) {
			return word + " is no command"
		}
		for _, name := range regexp.MustCompile(`[@A-Za-z][\w.]*`).FindAllString(rest, -1) {
			if path, ok := strings.CutPrefix(name, "decision."); ok && has(reflect.TypeFor[decisionlog.Record](), strings.Split(path, ".")) || known[name] {
				continue
			}
			return "no line has the field " + name
		}
	}
	return ""
}

// has reports whether the JSON of a type has a value at the path, in which lists have numbers.
func has(of reflect.Type, path []string) bool {
	switch {
	case len(path) == 0:
		return of.Kind() != reflect.Struct && of.Kind() != reflect.Slice
	case of.Kind() == reflect.Slice:
		_, err := strconv.Atoi(path[0])
		return err == nil && has(of.Elem(), path[1:])
	case of.Kind() != reflect.Struct:
		return false
	}
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && has(f.Type, path) || name == path[0] && has(f.Type, path[1:]) {
			return true
		}
	}
	return false
}
