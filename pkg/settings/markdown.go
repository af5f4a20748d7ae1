package settings

import (
	"fmt"
	"slices"
	"strings"
)

// firstScreen names the settings that most clusters set, in the order in which one meets them.
func firstScreen() []string {
	return []string{"clusterName", "mode", "disruption", "nodeRole", "vpcID", "subnetIDs", "clusterSecurityGroupID",
		"functionMemory", "trigger", "commitments", "rebalance", "decisionLog", "alarmEmail", "priceAlarmUSD", "onDelete"}
}

// MarkdownFirst is the table of the settings that most clusters set.
func MarkdownFirst() string {
	var b strings.Builder
	b.WriteString("| setting | default | meaning |\n|---|---|---|\n")
	for _, name := range firstScreen() {
		s, _ := FindSetting(name)
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Name, s.shownDefault(), s.Doc)
	}
	return b.String()
}

// MarkdownReference has a heading and a table for each group of settings that cdk.json takes.
func MarkdownReference() string {
	var groups []string
	byGroup := map[string][]Setting{}
	for _, s := range AllSettings() {
		if s.ByStack || s.ByTests {
			continue
		}
		if !slices.Contains(groups, s.Group) {
			groups = append(groups, s.Group)
		}
		byGroup[s.Group] = append(byGroup[s.Group], s)
	}
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n%s", g, markdownTable(byGroup[g]))
	}
	return b.String()
}

func markdownTable(of []Setting) string {
	var b strings.Builder
	b.WriteString("| setting | default | unit | meaning |\n|---|---|---|---|\n")
	for _, s := range of {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, s.shownDefault(), s.Unit, s.Doc)
	}
	return b.String()
}

func (s Setting) shownDefault() string {
	if s.Required {
		return "required"
	}
	return s.Default
}
