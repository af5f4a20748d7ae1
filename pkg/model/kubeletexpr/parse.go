package kubeletexpr

import (
	"errors"
	"fmt"
	"strconv"
)

// parser makes a node of tokens, by CEL's grammar.
type parser struct {
	tokens []token
	at     int
	depth  int
}

func (p *parser) next() token { return p.tokens[p.at] }

// take takes the next token if it is that symbol.
func (p *parser) take(symbol string) bool {
	if t := p.next(); t.kind != symbolToken || t.text != symbol {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(symbol string) error {
	if !p.take(symbol) {
		return fmt.Errorf("%w, want %s", p.unexpected(), symbol)
	}
	return nil
}

func (p *parser) unexpected() error {
	t := p.next()
	if t.kind == endToken {
		return errors.New("it ends too early")
	}
	return fmt.Errorf("at character %d: unexpected %q", t.at+1, t.text)
}

// parseConditional reads a ? b : c.
func (p *parser) parseConditional() (node, error) {
	if p.depth++; p.depth > mostNesting {
		return node{}, errors.New("it is nested too deeply")
	}
	defer func() { p.depth-- }()
	condition, err := p.parseBinary(0)
	if err != nil || !p.take("?") {
		return condition, err
	}
	yes, err := p.parseBinary(0)
	if err != nil {
		return node{}, err
	}
	if err := p.expect(":"); err != nil {
		return node{}, err
	}
	no, err := p.parseConditional()
	if err != nil {
		return node{}, err
	}
	return choose(condition, yes, no)
}

// operators are CEL's by how tightly they bind.
func operators() [][]string {
	return [][]string{{"||"}, {"&&"}, {"==", "!=", "<", "<=", ">", ">=", "in"}, {"+", "-"}, {"*", "/", "%"}}
}

// parseBinary reads operators that bind at least so tightly, from left to right.
func (p *parser) parseBinary(level int) (node, error) {
	levels := operators()
	if level == len(levels) {
		return p.parseUnary()
	}
	left, err := p.parseBinary(level + 1)
	for err == nil {
		operator := p.takeOperator(levels[level])
		if operator == "" {
			return left, nil
		}
		var right node
		if right, err = p.parseBinary(level + 1); err == nil {
			left, err = combine(operator, left, right)
		}
	}
	return node{}, err
}

func (p *parser) takeOperator(among []string) string {
	t := p.next()
	if t.kind != symbolToken && (t.kind != nameToken || t.text != "in") {
		return ""
	}
	for _, o := range among {
		if t.text == o {
			p.at++
			return o
		}
	}
	return ""
}

// parseUnary reads ! and - before a value.
func (p *parser) parseUnary() (node, error) {
	for _, symbol := range []string{"!", "-"} {
		n := 0
		for p.take(symbol) {
			if n++; n > mostNesting {
				return node{}, errors.New("it is nested too deeply")
			}
		}
		if n == 0 {
			continue
		}
		if t := p.next(); symbol == "-" && n == 1 && (t.kind == intToken || t.kind == doubleToken) {
			// the least integer has no positive counterpart
			p.tokens[p.at].text = "-" + t.text
			n--
		}
		of, err := p.parseMember()
		if err != nil || n%2 == 0 { // two in a row are none, whatever the type
			return of, err
		}
		return negate(symbol, of)
	}
	return p.parseMember()
}

// parseMember reads a value with what is asked of it.
func (p *parser) parseMember() (node, error) {
	of, err := p.parsePrimary()
	for err == nil {
		switch {
		case p.take("."):
			name := p.next()
			if name.kind != nameToken {
				return node{}, p.unexpected()
			}
			p.at++
			if err = p.expect("("); err != nil {
				return node{}, err
			}
			var args []node
			if args, err = p.parseList(")"); err == nil {
				of, err = callMethod(name.text, of, args)
			}
		case p.take("["):
			var args []node
			if args, err = p.parseList("]"); err == nil {
				of, err = index(of, args)
			}
		default:
			return of, nil
		}
	}
	return node{}, err
}

func (p *parser) parsePrimary() (node, error) {
	t := p.next()
	switch t.kind {
	case intToken:
		p.at++
		n, err := strconv.ParseInt(t.text, 0, 64)
		if base10, err10 := strconv.ParseInt(t.text, 10, 64); err10 == nil {
			n, err = base10, nil // a zero in front means nothing
		}
		if err != nil {
			return node{}, fmt.Errorf("at character %d: %s is no integer of 64 bits", t.at+1, t.text)
		}
		return constant(plainType(intKind), value{int: n}), nil
	case doubleToken:
		p.at++
		d, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return node{}, fmt.Errorf("at character %d: %s is no double", t.at+1, t.text)
		}
		return constant(plainType(doubleKind), value{double: d}), nil
	case textToken:
		p.at++
		return constant(plainType(textKind), value{text: t.text}), nil
	case nameToken:
		p.at++
		return p.parseName(t)
	}
	switch {
	case p.take("("):
		of, err := p.parseConditional()
		if err == nil {
			err = p.expect(")")
		}
		return of, err
	case p.take("["):
		elements, err := p.parseList("]")
		if err != nil {
			return node{}, err
		}
		return makeList(elements)
	}
	return node{}, p.unexpected()
}

// parseName reads a constant, a variable or the call of a function.
func (p *parser) parseName(t token) (node, error) {
	switch t.text {
	case "true", "false":
		return constant(plainType(boolKind), value{bool: t.text == "true"}), nil
	}
	if p.take("(") {
		args, err := p.parseList(")")
		if err != nil {
			return node{}, err
		}
		return callFunction(t.text, args)
	}
	if v, ok := variable(t.text); ok {
		return v, nil
	}
	return node{}, fmt.Errorf("at character %d: %s is not known here", t.at+1, t.text)
}

// parseList reads expressions with commas between them up to the end.
func (p *parser) parseList(end string) (out []node, err error) {
	for {
		if p.take(end) {
			return out, nil
		}
		if len(out) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
			if end == "]" && p.take(end) {
				return out, nil
			}
		}
		one, err := p.parseConditional()
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
}
