package kubeletexpr

import (
	"errors"
	"fmt"
	"math"
)

// Variables are what an expression can ask of an instance type. In maxPods, MaxPods is what it would be without it.
type Variables struct {
	VCPUs, MemoryMiB       int64
	DefaultENIs, IPsPerENI int64
	MaxPods                int64
	InstanceType           string
}

// Program is an expression that was compiled. It may be used by several goroutines.
type Program struct {
	text string
	root node
}

// node is a part of an expression with its type.
type node struct {
	is   valueType
	eval func(Variables) (value, error)
}

const mostNesting = 250

// Compile reads an expression and checks its types. What it comes to is a number.
func Compile(text string) (*Program, error) {
	tokens, err := scanTokens(text)
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", text, err)
	}
	p := parser{tokens: tokens}
	root, err := p.parseConditional()
	if err == nil && p.next().kind != endToken {
		err = p.unexpected()
	}
	if err == nil && root.is != plainType(intKind) && root.is != plainType(doubleKind) {
		err = fmt.Errorf("it is of type %s and not a number", root.is)
	}
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", text, err)
	}
	return &Program{text: text, root: root}, nil
}

// Evaluate returns what the expression comes to, without what is behind the point.
func (p *Program) Evaluate(v Variables) (int64, error) {
	got, err := p.root.eval(v)
	if err == nil && p.root.is.kind == doubleKind {
		if math.IsInf(got.double, 0) || math.IsNaN(got.double) {
			err = errors.New("it is not finite")
		} else {
			got.int, err = intOf(got.double)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("expression %q for %s: %w", p.text, v.InstanceType, err)
	}
	return got.int, nil
}

// variable finds what a name stands for.
func variable(name string) (node, bool) {
	number := func(get func(Variables) int64) (node, bool) {
		return node{plainType(intKind), func(v Variables) (value, error) { return value{int: get(v)}, nil }}, true
	}
	switch name {
	case "vcpus":
		return number(func(v Variables) int64 { return v.VCPUs })
	case "memory_mib":
		return number(func(v Variables) int64 { return v.MemoryMiB })
	case "default_enis":
		return number(func(v Variables) int64 { return v.DefaultENIs })
	case "ips_per_eni":
		return number(func(v Variables) int64 { return v.IPsPerENI })
	case "max_pods":
		return number(func(v Variables) int64 { return v.MaxPods })
	case "instance_type":
		return node{plainType(textKind), func(v Variables) (value, error) {
			return value{text: v.InstanceType}, nil
		}}, true
	}
	return node{}, false
}

func constant(t valueType, v value) node {
	return node{t, func(Variables) (value, error) { return v, nil }}
}
