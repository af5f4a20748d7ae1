// Package readme reads the README files of this repository as somebody does who types what they say. It is for tests
// that run it.
package readme

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// SummedLimits are the most words of each page that may have some of the 11,000 that they have together.
func SummedLimits() map[string]int {
	return map[string]int{
		"README.md":                 980,
		"events/README.md":          500,
		"functions/README.md":       1760,
		"functions/coming-from.md":  380,
		"functions/differences.md":  1510,
		"infra/README.md":           2831,
		"infra/lab/README.md":       218,
		"infra/lab/bench/README.md": 241,
		"pkg/README.md":             1460,
		"pkg/nodeclaim/README.md":   620,
		"pkg/testing/README.md":     500,
	}
}

// References are pages without a limit: tables that a test generates or checks, and results of measurements.
func References() []string {
	return []string{
		"functions/rollouts.md",
		"infra/CHANGELOG.md",
		"infra/accept.md",
		"infra/lab/bench/differences.md",
		"infra/lab/bench/disruption.md",
		"infra/lab/bench/experiments.md",
		"infra/lab/bench/karpenter-1.15.md",
		"infra/lab/bench/measurements.md",
		"infra/lab/ablation/results.md",
		"infra/lab/bench/results.md",
		"infra/lab/bench/round-trip.md",
		"functions/stopped-capacity.md",
		"infra/lab/bench/scale.md",
		"infra/costs.md",
		"infra/lab/mutants/score.md",
		"infra/release.md",
		"infra/repair.md",
		"infra/security.md",
		"infra/settings.md",
		"pkg/testing/breaks.md",
		"pkg/testing/budget.md",
	}
}

// MaxDesignWords is the most words that each page of Designs may have. They are counted apart from SummedLimits: users
// read those pages and pay for each word, while a successor reads one design, once, before a change. The limit keeps
// each to one decision.
const MaxDesignWords = 900

// Designs are the pages that say why a large decision is as it is, and which alternatives lost.
func Designs() []string {
	return []string{
		"pkg/designs/consolidation.md",
		"pkg/designs/price-first.md",
		"pkg/designs/replacement-first.md",
		"pkg/designs/rollouts.md",
		"pkg/designs/spot-pools.md",
		"pkg/designs/stopped-capacity.md",
		"pkg/designs/watch-cache.md",
	}
}

// MaxProjectWords is the most words that each page of Project may have.
const MaxProjectWords = 400

// Project are the pages that a hosting site shows to those who change or report something.
func Project() []string {
	return []string{".github/CONTRIBUTING.md", ".github/SECURITY.md"}
}

// Limits are the most words of each page that people read from top to bottom: SummedLimits, Designs and Project.
func Limits() map[string]int {
	out := SummedLimits()
	for _, name := range Designs() {
		out[name] = MaxDesignWords
	}
	for _, name := range Project() {
		out[name] = MaxProjectWords
	}
	return out
}

// Pages are the texts of the pages with a limit, and of the references, by path below the root of the repository.
func Pages(root string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(Limits())), References()) {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, fmt.Errorf("read page: %w", err)
		}
		out[name] = string(b)
	}
	return out, nil
}

// Commands returns what a page tells people to type: indented lines and spans of code that begin with a program's name.
func Commands(text string) []string {
	begins := regexp.MustCompile(`^(make|go|joiner|aws|kubectl|cdk|helm) [a-z.\-]`)
	var out []string
	add := func(c string) {
		c, _, _ = strings.Cut(c, "  #")
		c = strings.TrimSpace(c)
		if ours := strings.TrimPrefix(c, "./"); strings.HasPrefix(ours, "joiner ") { // of a release folder
			c = ours
		}
		if begins.MatchString(c) {
			out = append(out, c)
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "    ") {
			add(strings.TrimSpace(line))
		}
	}
	for _, span := range regexp.MustCompile("`[^`]+`").FindAllString(text, -1) {
		add(strings.ReplaceAll(strings.Trim(span, "`"), "\n", " "))
	}
	return out
}
