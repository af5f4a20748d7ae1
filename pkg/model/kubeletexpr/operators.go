package kubeletexpr

import (
	"cmp"
	"errors"
	"fmt"
)

// noOverload says that an operator or a function does not take values of these types, as CEL words it.
func noOverload(name string, args ...node) error {
	types := ""
	for i, a := range args {
		if i > 0 {
			types += ", "
		}
		types += a.is.String()
	}
	return fmt.Errorf("no matching overload of %s for (%s)", name, types)
}

func choose(condition, yes, no node) (node, error) {
	if condition.is != plainType(boolKind) || yes.is != no.is {
		return node{}, noOverload("?:", condition, yes, no)
	}
	return node{yes.is, func(v Variables) (value, error) {
		c, err := condition.eval(v)
		switch {
		case err != nil:
			return value{}, err
		case c.bool:
			return yes.eval(v)
		}
		return no.eval(v)
	}}, nil
}

func negate(symbol string, of node) (node, error) {
	switch {
	case symbol == "!" && of.is == plainType(boolKind):
		return after(boolKind, of, func(a value) (value, error) { return value{bool: !a.bool}, nil }), nil
	case symbol == "-" && of.is == plainType(doubleKind):
		return after(doubleKind, of, func(a value) (value, error) { return value{double: -a.double}, nil }), nil
	case symbol == "-" && of.is == plainType(intKind):
		return after(intKind, of, func(a value) (value, error) {
			n, err := subtractInts(0, a.int)
			return value{int: n}, err
		}), nil
	}
	return node{}, noOverload(symbol, of)
}

// after computes from one value.
func after(to kind, of node, do func(a value) (value, error)) node {
	return node{plainType(to), func(v Variables) (value, error) {
		a, err := of.eval(v)
		if err != nil {
			return value{}, err
		}
		return do(a)
	}}
}

// both computes from two values.
func both(to valueType, left, right node, do func(a, b value) (value, error)) node {
	return node{to, func(v Variables) (value, error) {
		a, err := left.eval(v)
		if err != nil {
			return value{}, err
		}
		b, err := right.eval(v)
		if err != nil {
			return value{}, err
		}
		return do(a, b)
	}}
}

func combine(operator string, left, right node) (node, error) {
	switch operator {
	case "&&", "||":
		return connect(operator, left, right)
	case "==", "!=":
		return equate(operator, left, right)
	case "in":
		if right.is.kind != listKind || right.is.of != left.is.kind && right.is.of != emptyKind {
			return node{}, noOverload(operator, left, right)
		}
		return both(plainType(boolKind), left, right, func(a, b value) (value, error) {
			return value{bool: contains(b.list, a, left.is)}, nil
		}), nil
	}
	if left.is != right.is {
		return node{}, noOverload(operator, left, right)
	}
	switch operator {
	case "<", "<=", ">", ">=":
		return order(operator, left, right)
	}
	return compute(operator, left, right)
}

func contains(list []value, one value, t valueType) bool {
	for _, x := range list {
		if x.equals(one, t) {
			return true
		}
	}
	return false
}

// connect is && and ||. An error on one side does not matter where the other decides.
func connect(operator string, left, right node) (node, error) {
	if left.is != plainType(boolKind) || right.is != left.is {
		return node{}, noOverload(operator, left, right)
	}
	decides := operator == "||"
	return node{left.is, func(v Variables) (value, error) {
		a, errA := left.eval(v)
		if errA == nil && a.bool == decides {
			return a, nil
		}
		b, errB := right.eval(v)
		if errB == nil && b.bool == decides {
			return b, nil
		}
		return value{bool: !decides}, errors.Join(errA, errB)
	}}, nil
}

func equate(operator string, left, right node) (node, error) {
	lists := left.is.kind == listKind && right.is.kind == listKind &&
		(left.is.of == emptyKind || right.is.of == emptyKind)
	if left.is != right.is && !lists {
		return node{}, noOverload(operator, left, right)
	}
	return both(plainType(boolKind), left, right, func(a, b value) (value, error) {
		return value{bool: a.equals(b, left.is) == (operator == "==")}, nil
	}), nil
}

func order(operator string, left, right node) (node, error) {
	holds := func(less, equal bool) value {
		switch operator {
		case "<":
			return value{bool: less}
		case "<=":
			return value{bool: less || equal}
		}
		return value{}
	}
	if operator == ">" || operator == ">=" {
		return order(map[string]string{">": "<", ">=": "<="}[operator], right, left)
	}
	var compare func(a, b value) value
	switch left.is.kind {
	case intKind:
		compare = func(a, b value) value { return holds(a.int < b.int, a.int == b.int) }
	case doubleKind:
		compare = func(a, b value) value { return holds(a.double < b.double, a.double == b.double) }
	case textKind:
		compare = func(a, b value) value { return holds(a.text < b.text, a.text == b.text) }
	case boolKind:
		compare = func(a, b value) value { return holds(!a.bool && b.bool, a.bool == b.bool) }
	default:
		return node{}, noOverload(operator, left, right)
	}
	return both(plainType(boolKind), left, right, func(a, b value) (value, error) { return compare(a, b), nil }), nil
}

func compute(operator string, left, right node) (node, error) {
	switch {
	case left.is.kind == intKind:
		do := map[string]func(a, b int64) (int64, error){"+": addInts, "-": subtractInts, "*": multiplyInts,
			"/": divideInts, "%": remainder}[operator]
		return both(left.is, left, right, func(a, b value) (value, error) {
			n, err := do(a.int, b.int)
			return value{int: n}, err
		}), nil
	case left.is.kind == doubleKind && operator != "%":
		return both(left.is, left, right, func(a, b value) (value, error) {
			return value{double: computeDoubles(operator, a.double, b.double)}, nil
		}), nil
	case left.is.kind == textKind && operator == "+":
		return both(left.is, left, right, func(a, b value) (value, error) {
			return value{text: a.text + b.text}, nil
		}), nil
	}
	return node{}, noOverload(operator, left, right)
}

func computeDoubles(operator string, a, b float64) float64 {
	switch operator {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	}
	return a / b
}

// makeList makes a list of elements of one plain type.
func makeList(elements []node) (node, error) {
	t := valueType{listKind, emptyKind}
	for i, e := range elements {
		if e.is.kind == listKind || i > 0 && e.is.kind != t.of {
			return node{}, errors.New("lists of lists or of several types are not known here")
		}
		t.of = e.is.kind
	}
	return node{t, func(v Variables) (value, error) {
		out := value{list: make([]value, len(elements))}
		for i, e := range elements {
			var err error
			if out.list[i], err = e.eval(v); err != nil {
				return value{}, err
			}
		}
		return out, nil
	}}, nil
}

func index(list node, args []node) (node, error) {
	if len(args) != 1 || list.is.kind != listKind || list.is.of == emptyKind || args[0].is != plainType(intKind) {
		return node{}, noOverload("[]", append([]node{list}, args...)...)
	}
	return both(plainType(list.is.of), list, args[0], func(l, i value) (value, error) {
		if i.int < 0 || i.int >= int64(len(l.list)) {
			return value{}, fmt.Errorf("index %d of a list of %d", i.int, len(l.list))
		}
		return l.list[i.int], nil
	}), nil
}

// larger and smaller are Karpenter's max and min: where one is no number they give back the one behind.
func larger[N cmp.Ordered](a, b N) N {
	if a > b {
		return a
	}
	return b
}

func smaller[N cmp.Ordered](a, b N) N {
	if a < b {
		return a
	}
	return b
}
