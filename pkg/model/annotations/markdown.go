package annotations

import (
	"fmt"
	"strings"
)

// MarkdownPool is the heading and the table of what people write into the metadata of NodePools.
func MarkdownPool() string {
	var b strings.Builder
	b.WriteString("\n## Annotations of NodePools\n\nThey stand in the metadata of the NodePool. " +
		"The last column says what waits while Joiner does not know the value.\n\n")
	b.WriteString("| annotation | value | meaning | with another value |\n|---|---|---|---|\n")
	for _, a := range ListPool() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", a.Key, a.Values, a.Does, a.Stops)
	}
	return b.String()
}
