// Package readme reads the README files of this repository as somebody does who types what they say. It is for tests
// that run it.
package readme

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Pages are the texts of the README files by path, below the root of the repository.
func Pages(root string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range []string{"README.md", "functions/README.md", "functions/differences.md", "infra/README.md",
		"pkg/README.md", "events/README.md"} {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, fmt.Errorf("read page: %w", err)
		}
		out[name] = string(b)
	}
	return out, nil
}

// Commands are what a page tells people to type: indented lines and spans of code that begin with a program's name.
func Commands(text string) []string {
	begins := regexp.MustCompile(`^(make|go|joiner|aws|kubectl|cdk|helm) [a-z.\-]`)
	var out []string
	add := func(c string) {
		c, _, _ = strings.Cut(c, "  #")
		c = strings.TrimSpace(c)
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
