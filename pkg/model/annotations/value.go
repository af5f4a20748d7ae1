package annotations

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mostUSD bounds amounts: 1,000,000 USD per hour.
const mostUSD = 1e6

// reader stores what a text says, or returns what is wrong with it.
type reader = func(p *NodePool, key, text string) (wrong string)

// word reads one of the words. An empty text says nothing.
func word(set func(*NodePool, string), words ...string) reader {
	return func(p *NodePool, key, text string) string {
		if text != "" && !slices.Contains(words, text) {
			last := len(words) - 1
			return fmt.Sprintf("annotation %s: %q is neither %s nor %s", key, text, strings.Join(words[:last], ", "),
				words[last])
		}
		set(p, text)
		return ""
	}
}

// text reads anything.
func text(set func(*NodePool, string)) reader {
	return func(p *NodePool, _, text string) string {
		set(p, text)
		return ""
	}
}

// truth reads true or false.
func truth(set func(*NodePool, bool)) reader {
	return func(p *NodePool, key, text string) string {
		if text != "true" && text != "false" {
			return fmt.Sprintf("annotation %s: %q is neither true nor false", key, text)
		}
		set(p, text == "true")
		return ""
	}
}

// duration reads a duration. An empty text says nothing.
func duration(set func(*NodePool, time.Duration)) reader {
	return func(p *NodePool, key, text string) string {
		if text == "" {
			return ""
		}
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return fmt.Sprintf("annotation %s: %q is no duration longer than 0; write it like 12h", key, text)
		}
		set(p, d)
		return ""
	}
}

// number reads a number from 0 to most, which the unit may follow.
func number(set func(*NodePool, float64), most float64, unit string) reader {
	return func(p *NodePool, key, text string) string {
		n, err := strconv.ParseFloat(strings.TrimSuffix(text, unit), 64)
		if err != nil || !(n >= 0 && n <= most) {
			return fmt.Sprintf("annotation %s: %q is not a number from 0 to %.0f%s", key, text, most, unit)
		}
		set(p, n)
		return ""
	}
}

// usd reads an amount.
func usd(set func(*NodePool, float64)) reader {
	return func(p *NodePool, key, text string) string {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= 0 && n <= mostUSD) {
			return fmt.Sprintf("annotation %s is %q; write USD per hour like 12.50", key, text)
		}
		set(p, n)
		return ""
	}
}
