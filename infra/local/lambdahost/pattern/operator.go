package pattern

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// compileTest reads one entry of a leaf array: a plain value, or an object with exactly one operator.
func compileTest(path string, raw any) (test, error) {
	switch v := raw.(type) {
	case string, json.Number, bool, nil:
		return present(func(value any) bool { return value == v }), nil
	case map[string]any:
		if len(v) != 1 {
			return nil, fmt.Errorf("%s: wants exactly one operator, has %d", pathName(path), len(v))
		}
		for name, operand := range v {
			return compileOperator(path+"."+name, name, operand)
		}
	}
	return nil, fmt.Errorf("%s: wants a value or an operator, not %T", pathName(path), raw)
}

func compileOperator(path, name string, operand any) (test, error) {
	switch name {
	case "exists":
		want, ok := operand.(bool)
		if !ok {
			return nil, fmt.Errorf("%s: wants true or false", pathName(path))
		}
		return func(_ any, absent bool) bool { return absent != want }, nil
	case "anything-but":
		return compileAnythingBut(path, operand)
	case "numeric":
		return compileNumeric(path, operand)
	case "cidr":
		return compileCIDR(path, operand)
	case "prefix", "suffix", "equals-ignore-case", "wildcard":
		accept, err := compileText(path, name, operand)
		if err != nil {
			return nil, err
		}
		return present(onText(accept)), nil
	default:
		return nil, fmt.Errorf("%s: unknown operator %q", pathName(path), name)
	}
}

// compileText reads an operator on strings. Prefix and suffix may be told to ignore case.
func compileText(path, name string, operand any) (func(string) bool, error) {
	fold := false
	if m, ok := operand.(map[string]any); ok && len(m) == 1 && (name == "prefix" || name == "suffix") {
		if inner, has := m["equals-ignore-case"]; has {
			operand, fold = inner, true
		}
	}
	want, ok := operand.(string)
	if !ok {
		return nil, fmt.Errorf("%s: wants a string", pathName(path))
	}
	same := func(s string) bool { return s == want }
	if fold || name == "equals-ignore-case" {
		same = func(s string) bool { return strings.EqualFold(s, want) }
	}
	switch name {
	case "prefix":
		return func(s string) bool { return len(s) >= len(want) && same(s[:len(want)]) }, nil
	case "suffix":
		return func(s string) bool { return len(s) >= len(want) && same(s[len(s)-len(want):]) }, nil
	case "wildcard":
		return compileWildcard(path, want)
	default:
		return same, nil
	}
}

// compileWildcard splits the text at its stars; a backslash makes the next star or backslash an ordinary character.
func compileWildcard(path, want string) (func(string) bool, error) {
	parts := []string{""}
	for i := 0; i < len(want); i++ {
		last := len(parts) - 1
		switch {
		case want[i] == '\\':
			i++
			if i == len(want) || (want[i] != '*' && want[i] != '\\') {
				return nil, fmt.Errorf("%s: a backslash must be followed by * or \\", pathName(path))
			}
			parts[last] += string(want[i])
		case want[i] == '*' && i > 0 && want[i-1] == '*' && parts[last] == "":
			return nil, fmt.Errorf("%s: consecutive wildcard characters", pathName(path))
		case want[i] == '*':
			parts = append(parts, "")
		default:
			parts[last] += want[i : i+1]
		}
	}
	return func(s string) bool { return matchParts(s, parts) }, nil
}

// matchParts reports whether s is the parts with anything between them.
func matchParts(s string, parts []string) bool {
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return s == first
	}
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(s, part)
		if !found {
			return false
		}
		s = rest
	}
	return true
}

func compileAnythingBut(path string, operand any) (test, error) {
	if m, ok := operand.(map[string]any); ok {
		return compileAnythingButText(path, m)
	}
	list, ok := operand.([]any)
	if !ok {
		list = []any{operand}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: wants at least one value", pathName(path))
	}
	for _, v := range list {
		switch v.(type) {
		case string, json.Number:
		default:
			return nil, fmt.Errorf("%s: wants strings or numbers, not %T", pathName(path), v)
		}
	}
	return present(func(value any) bool { return !slices.Contains(list, value) }), nil
}

// compileAnythingButText reads anything-but over a string operator, whose operand may be one string or several.
func compileAnythingButText(path string, m map[string]any) (test, error) {
	if len(m) != 1 {
		return nil, fmt.Errorf("%s: wants exactly one operator, has %d", pathName(path), len(m))
	}
	var refused []func(string) bool
	for name, operand := range m {
		here := path + "." + name
		if !slices.Contains([]string{"prefix", "suffix", "equals-ignore-case", "wildcard"}, name) {
			return nil, fmt.Errorf("%s: unknown operator %q", pathName(here), name)
		}
		list, ok := operand.([]any)
		if !ok {
			list = []any{operand}
		}
		for _, item := range list {
			accept, err := compileText(here, name, item)
			if err != nil {
				return nil, err
			}
			refused = append(refused, accept)
		}
	}
	if len(refused) == 0 {
		return nil, fmt.Errorf("%s: wants at least one value", pathName(path))
	}
	return present(onText(func(s string) bool {
		return !slices.ContainsFunc(refused, func(accept func(string) bool) bool { return accept(s) })
	})), nil
}

// bound is one comparison of a numeric test.
type bound struct {
	sign  string
	limit float64
}

func compileNumeric(path string, operand any) (test, error) {
	list, ok := operand.([]any)
	if !ok || (len(list) != 2 && len(list) != 4) {
		return nil, fmt.Errorf("%s: wants [sign, number] or [sign, number, sign, number]", pathName(path))
	}
	var bounds []bound
	for i := 0; i < len(list); i += 2 {
		sign, _ := list[i].(string)
		number, isNumber := list[i+1].(json.Number)
		limit, err := strconv.ParseFloat(number.String(), 64)
		if !slices.Contains([]string{"=", "<", "<=", ">", ">="}, sign) || !isNumber || err != nil {
			return nil, fmt.Errorf("%s: cannot use %v %v", pathName(path), list[i], list[i+1])
		}
		bounds = append(bounds, bound{sign: sign, limit: limit})
	}
	return present(func(value any) bool {
		number, ok := value.(json.Number)
		if !ok {
			return false
		}
		x, err := number.Float64()
		return err == nil && !slices.ContainsFunc(bounds, func(b bound) bool { return !b.holds(x) })
	}), nil
}

func (b bound) holds(x float64) bool {
	switch b.sign {
	case "<":
		return x < b.limit
	case "<=":
		return x <= b.limit
	case ">":
		return x > b.limit
	case ">=":
		return x >= b.limit
	default:
		return x == b.limit
	}
}

func compileCIDR(path string, operand any) (test, error) {
	text, _ := operand.(string)
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pathName(path), err)
	}
	return present(onText(func(s string) bool {
		address, err := netip.ParseAddr(s)
		return err == nil && network.Contains(address)
	})), nil
}

// present makes a test of values only: a field that is not there never fits.
func present(accept func(value any) bool) test {
	return func(value any, absent bool) bool { return !absent && accept(value) }
}

// onText applies a test of strings to any value; other values do not fit.
func onText(accept func(string) bool) func(any) bool {
	return func(value any) bool {
		s, ok := value.(string)
		return ok && accept(s)
	}
}
