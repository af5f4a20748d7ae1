package status

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/resources"
)

// FormatAge says a duration as kubectl does: its two largest units at most.
func FormatAge(d time.Duration) string {
	s := int64(d / time.Second)
	switch {
	case s < 120:
		return fmt.Sprintf("%ds", s)
	case s < 2*3600:
		return fmt.Sprintf("%dm", s/60)
	case s < 48*3600:
		return secondUnit(s/3600, "h", s%3600/60, "m", 8)
	}
	return secondUnit(s/86400, "d", s%86400/3600, "h", 8)
}

// secondUnit leaves the second unit out where the first says enough.
func secondUnit(a int64, of string, b int64, then string, enough int64) string {
	if b == 0 || a >= enough {
		return fmt.Sprintf("%d%s", a, of)
	}
	return fmt.Sprintf("%d%s%d%s", a, of, b, then)
}

// FormatUSD says a price per hour.
func FormatUSD(n Node) string {
	if !n.Priced {
		return "?"
	}
	return fmt.Sprintf("%.4f", n.HourlyUSD)
}

// FormatParts lists what a price per hour is made of; nothing where it is for instances alone.
func FormatParts(hourlyUSD float64, parts instancetypes.NodeCost) []string {
	if parts.Total() == 0 {
		return nil
	}
	out := []string{fmt.Sprintf("instance %.4f", hourlyUSD-parts.Total())}
	if parts.Disks > 0 {
		out = append(out, fmt.Sprintf("volumes %.4f", parts.Disks))
	}
	if parts.Address > 0 {
		out = append(out, fmt.Sprintf("IPv4 %.4f", parts.Address))
	}
	if parts.Declared > 0 {
		out = append(out, fmt.Sprintf("declared %.4f", parts.Declared))
	}
	return out
}

// PriceLines is a line with the parts of a price per hour; nothing where it is for instances alone.
func PriceLines(hourlyUSD float64, parts instancetypes.NodeCost) []string {
	if list := FormatParts(hourlyUSD, parts); len(list) > 0 {
		return []string{"USD per hour: " + strings.Join(list, ", ")}
	}
	return nil
}

// FormatSteps says where the time went.
func FormatSteps(steps []Step) string {
	parts := lists.Of(steps, func(s Step) string { return fmt.Sprintf("%s %.2f s", s.Name, s.Took.Seconds()) })
	return strings.Join(parts, ", ")
}

// PoolRemarks returns what is to be known of a pool beside its nodes: that it sleeps, and what its nodes may cost.
func PoolRemarks(p NodePool) []string {
	var out []string
	switch {
	case p.Asleep && p.Wakes.IsZero():
		out = append(out, "asleep")
	case p.Asleep:
		out = append(out, "asleep until "+p.Wakes.Format("2006-01-02 15:04")+" UTC")
	}
	if p.LimitUSD != nil {
		out = append(out, fmt.Sprintf("limit %.4f USD/h", *p.LimitUSD))
	}
	return out
}

// FormatCores says millicores as vCPUs, with one decimal where that matters.
func FormatCores(milli int64) string {
	return strconv.FormatFloat(math.Round(float64(milli)/100)/10, 'f', -1, 64)
}

// GiB says bytes in gibibytes, with one decimal where that matters.
func GiB(bytes int64) string {
	return strconv.FormatFloat(math.Round(float64(bytes)/float64(1024*resources.MiB)*10)/10, 'f', -1, 64)
}

// DrawBar draws a fill of that width in eighths of a character; what is over the full width is not drawn.
func DrawBar(f FillLevel, width int) string {
	eighths := int(math.Round(min(1, f.TakenPart()) * float64(width) * 8))
	bar := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[part-1])
	}
	return bar + strings.Repeat("·", width-len([]rune(bar)))
}

// FormatPercent says a fill as a whole number of percent.
func FormatPercent(f FillLevel) string {
	return fmt.Sprintf("%d%%", int(math.Round(f.TakenPart()*100)))
}
