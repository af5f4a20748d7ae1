package kubeletexpr

import (
	"errors"
	"math"
)

type kind int

const (
	intKind kind = iota
	doubleKind
	boolKind
	textKind
	listKind
	emptyKind // the elements of a list that has none
)

func (k kind) String() string {
	return [...]string{"int", "double", "bool", "string", "list", "list"}[k]
}

// valueType is the type of a value. Of is that of the elements of a list.
type valueType struct{ kind, of kind }

func plainType(k kind) valueType { return valueType{kind: k} }

func (t valueType) String() string {
	if t.kind == listKind {
		return "list(" + t.of.String() + ")"
	}
	return t.kind.String()
}

// value is what an expression comes to.
type value struct {
	int    int64
	double float64
	bool   bool
	text   string
	list   []value
}

func (v value) equals(w value, t valueType) bool {
	switch t.kind {
	case intKind:
		return v.int == w.int
	case doubleKind:
		return v.double == w.double
	case boolKind:
		return v.bool == w.bool
	case textKind:
		return v.text == w.text
	}
	if len(v.list) != len(w.list) {
		return false
	}
	for i := range v.list {
		if !v.list[i].equals(w.list[i], plainType(t.of)) {
			return false
		}
	}
	return true
}

var (
	errOverflow = errors.New("integer overflow")
	errZero     = errors.New("division by zero")
)

func addInts(a, b int64) (int64, error) {
	if b > 0 && a > math.MaxInt64-b || b < 0 && a < math.MinInt64-b {
		return 0, errOverflow
	}
	return a + b, nil
}

func subtractInts(a, b int64) (int64, error) {
	if b < 0 && a > math.MaxInt64+b || b > 0 && a < math.MinInt64+b {
		return 0, errOverflow
	}
	return a - b, nil
}

func multiplyInts(a, b int64) (int64, error) {
	if a == 0 || b == 0 {
		return 0, nil
	}
	c := a * b
	if c/b != a || a == -1 && b == math.MinInt64 || b == -1 && a == math.MinInt64 {
		return 0, errOverflow
	}
	return c, nil
}

func divideInts(a, b int64) (int64, error) {
	switch {
	case b == 0:
		return 0, errZero
	case a == math.MinInt64 && b == -1:
		return 0, errOverflow
	}
	return a / b, nil
}

func remainder(a, b int64) (int64, error) {
	switch {
	case b == 0:
		return 0, errZero
	case a == math.MinInt64 && b == -1:
		return 0, errOverflow
	}
	return a % b, nil
}

// intOf cuts off what is behind the point.
func intOf(d float64) (int64, error) {
	if math.IsNaN(d) || d <= math.MinInt64 || d >= math.MaxInt64 {
		return 0, errOverflow
	}
	return int64(d), nil
}
