package status

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
)

//go:embed page.html
var page string

// MostUnfolded caps the nodes of a NodePool, and the pods that wait, that a page shows without being asked.
const MostUnfolded = 100

// pagePolicy is the Content-Security-Policy of the page: its own style sheet and nothing else, so that a browser neither
// runs nor asks for what somebody may have brought into it.
func pagePolicy() string {
	_, sheet, _ := strings.Cut(page, "<style>")
	sheet, _, _ = strings.Cut(sheet, "</style>")
	sum := sha256.Sum256([]byte(sheet))
	return "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// WritePage writes the picture as one HTML page that needs nothing else: no script, no font, no address. Cluster is the
// name in its title.
func WritePage(w io.Writer, cluster string, v View) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"age": FormatAge, "usd": FormatUSD, "cores": FormatCores, "gib": GiB, "percent": FormatPercent,
		"remarks": PoolRemarks, "grade": FillGrade, "parts": FormatParts, "steps": FormatSteps,
		"folded": func(n int) bool { return n > MostUnfolded },
		"types": func(p NodePool) (out struct {
			List []TypeSum
			More int
		}) {
			out.List, out.More = SumByType(p.Nodes)
			return out
		},
		"phases": FormatPhases, "policy": pagePolicy,
		"width": func(f FillLevel) string { return fmt.Sprintf("%.1f%%", math.Min(1, f.TakenPart())*100) },
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("read page: %w", err)
	}
	if err := t.Execute(w, struct {
		Cluster string
		View
		BufferLines []string
	}{cluster, v, BufferLines(v)}); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// FillGrade says how well a room is used: good, fair, poor, over (more is asked for than there is), or none without
// room.
func FillGrade(f FillLevel) string {
	switch p := f.TakenPart(); {
	case f.Room <= 0:
		return "none"
	case p > 1:
		return "over"
	case p >= 0.7:
		return "good"
	case p >= 0.4:
		return "fair"
	}
	return "poor"
}
