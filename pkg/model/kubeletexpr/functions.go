package kubeletexpr

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// callFunction calls a function of CEL, or max or min as Karpenter has them.
func callFunction(name string, args []node) (node, error) {
	switch {
	case len(args) == 2 && (name == "max" || name == "min"):
		return extreme(name, args[0], args[1])
	case len(args) == 2 && name == "matches":
		return callMethod(name, args[0], args[1:])
	case len(args) == 1 && name == "size":
		return callMethod(name, args[0], nil)
	case len(args) == 1 && name == "int":
		return toInt(args[0])
	case len(args) == 1 && name == "double":
		return toDouble(args[0])
	}
	switch name {
	case "max", "min", "matches", "size", "int", "double":
		return node{}, noOverload(name, args...)
	}
	return node{}, fmt.Errorf("function %s is not known here", name)
}

func extreme(name string, a, b node) (node, error) {
	isNumber := func(n node) bool { return n.is.kind == intKind || n.is.kind == doubleKind }
	if !isNumber(a) || !isNumber(b) {
		return node{}, noOverload(name, a, b)
	}
	if a.is == b.is && a.is.kind == intKind {
		return both(a.is, a, b, func(x, y value) (value, error) {
			if name == "max" {
				return value{int: larger(x.int, y.int)}, nil
			}
			return value{int: smaller(x.int, y.int)}, nil
		}), nil
	}
	double := func(n node, v value) float64 {
		if n.is.kind == intKind {
			return float64(v.int)
		}
		return v.double
	}
	return both(plainType(doubleKind), a, b, func(x, y value) (value, error) {
		if name == "max" {
			return value{double: larger(double(a, x), double(b, y))}, nil
		}
		return value{double: smaller(double(a, x), double(b, y))}, nil
	}), nil
}

func toInt(of node) (node, error) {
	switch of.is.kind {
	case intKind:
		return of, nil
	case doubleKind:
		return after(intKind, of, func(a value) (value, error) {
			n, err := intOf(a.double)
			return value{int: n}, err
		}), nil
	case textKind:
		return after(intKind, of, func(a value) (value, error) {
			n, err := strconv.ParseInt(a.text, 10, 64)
			return value{int: n}, err
		}), nil
	}
	return node{}, noOverload("int", of)
}

func toDouble(of node) (node, error) {
	switch of.is.kind {
	case doubleKind:
		return of, nil
	case intKind:
		return after(doubleKind, of, func(a value) (value, error) {
			return value{double: float64(a.int)}, nil
		}), nil
	case textKind:
		return after(doubleKind, of, func(a value) (value, error) {
			d, err := strconv.ParseFloat(a.text, 64)
			return value{double: d}, err
		}), nil
	}
	return node{}, noOverload("double", of)
}

// callMethod calls a function on a value.
func callMethod(name string, of node, args []node) (node, error) {
	if name == "size" && len(args) == 0 {
		return sizeOf(of)
	}
	var do func(text, arg string) (bool, error)
	switch name {
	case "startsWith":
		do = func(text, arg string) (bool, error) { return strings.HasPrefix(text, arg), nil }
	case "endsWith":
		do = func(text, arg string) (bool, error) { return strings.HasSuffix(text, arg), nil }
	case "contains":
		do = func(text, arg string) (bool, error) { return strings.Contains(text, arg), nil }
	case "matches":
		do = func(text, arg string) (bool, error) {
			pattern, err := regexp.Compile(arg)
			if err != nil {
				return false, errors.New("a pattern is no regular expression")
			}
			return pattern.MatchString(text), nil
		}
	default:
		return node{}, fmt.Errorf("function %s is not known here", name)
	}
	if len(args) != 1 || of.is != plainType(textKind) || args[0].is != of.is {
		return node{}, noOverload(name, append([]node{of}, args...)...)
	}
	return both(plainType(boolKind), of, args[0], func(a, b value) (value, error) {
		yes, err := do(a.text, b.text)
		return value{bool: yes}, err
	}), nil
}

func sizeOf(of node) (node, error) {
	switch of.is.kind {
	case textKind:
		return after(intKind, of, func(a value) (value, error) {
			return value{int: int64(utf8.RuneCountInString(a.text))}, nil
		}), nil
	case listKind:
		return after(intKind, of, func(a value) (value, error) { return value{int: int64(len(a.list))}, nil }), nil
	}
	return node{}, noOverload("size", of)
}
