package kubeletexpr

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// mostSteps bounds the work of one evaluation, in cel-go's units of cost. What compares and computes needs some dozens.
const mostSteps = 10_000

// Variables holds the facts of an instance type that an expression can use. In maxPods, MaxPods is what it would be
// without it.
type Variables struct {
	VCPUs, MemoryMiB       int64
	DefaultENIs, IPsPerENI int64
	MaxPods                int64
	InstanceType           string
}

// Program is an expression that was compiled. It may be used by several goroutines.
type Program struct {
	text    string
	program cel.Program
}

// environment is made when the first expression is compiled, since it takes some milliseconds.
var environment = sync.OnceValues(newEnvironment)

// Compile reads an expression and checks its types. What it comes to is a number.
func Compile(text string) (*Program, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if found := issues.Errors(); len(found) > 0 {
		return nil, fmt.Errorf("expression %q: at character %d: %s", text, found[0].Location.Column()+1,
			strings.TrimSuffix(found[0].Message, " (in container '')"))
	}
	if is := ast.OutputType(); !is.IsExactType(cel.IntType) && !is.IsExactType(cel.DoubleType) {
		return nil, fmt.Errorf("expression %q: it is of type %s and not a number", text, is)
	}
	program, err := env.Program(ast, cel.CostLimit(mostSteps))
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", text, err)
	}
	return &Program{text: text, program: program}, nil
}

// Evaluate returns what the expression comes to, without what is behind the point.
func (p *Program) Evaluate(v Variables) (int64, error) {
	got, _, err := p.program.Eval(map[string]any{"vcpus": v.VCPUs, "memory_mib": v.MemoryMiB,
		"default_enis": v.DefaultENIs, "ips_per_eni": v.IPsPerENI, "max_pods": v.MaxPods, "instance_type": v.InstanceType})
	if err != nil {
		return 0, fmt.Errorf("expression %q for %s: %w", p.text, v.InstanceType, err)
	}
	n, err := integer(got)
	if err != nil {
		return 0, fmt.Errorf("expression %q for %s: %w", p.text, v.InstanceType, err)
	}
	return n, nil
}

// integer is the number without what is behind the point. Karpenter turns one that is too large into some integer;
// here it is an error.
func integer(of ref.Val) (int64, error) {
	switch n := of.(type) {
	case types.Int:
		return int64(n), nil
	case types.Double:
		if math.IsInf(float64(n), 0) || math.IsNaN(float64(n)) {
			return 0, errors.New("it is not finite")
		}
		if n <= math.MinInt64 || n >= math.MaxInt64 {
			return 0, errors.New("integer overflow")
		}
		return int64(n), nil
	}
	return 0, fmt.Errorf("it is a %s and not a number", of.Type())
}

// newEnvironment has the variables, and max and min of two numbers as Karpenter has them.
func newEnvironment() (*cel.Env, error) {
	options := []cel.EnvOption{cel.Variable("instance_type", cel.StringType)}
	for _, name := range []string{"vcpus", "memory_mib", "default_enis", "ips_per_eni", "max_pods"} {
		options = append(options, cel.Variable(name, cel.IntType))
	}
	larger := func(a, b ref.Val) bool { return a.(traits.Comparer).Compare(b) == types.IntOne }
	options = append(options, chooseNumber("max", larger),
		chooseNumber("min", func(a, b ref.Val) bool { return larger(b, a) }))
	return cel.NewEnv(options...)
}

// chooseNumber declares a function that returns its first number if that is preferred to the second, and else the
// second. It is a double when one of them is.
func chooseNumber(name string, prefer func(a, b ref.Val) bool) cel.EnvOption {
	var overloads []cel.FunctionOpt
	for _, first := range []*cel.Type{cel.IntType, cel.DoubleType} {
		for _, second := range []*cel.Type{cel.IntType, cel.DoubleType} {
			result := cel.DoubleType
			if first == second {
				result = first
			}
			overloads = append(overloads, cel.Overload(fmt.Sprintf("%s_%s_%s", name, first, second),
				[]*cel.Type{first, second}, result, cel.BinaryBinding(func(a, b ref.Val) ref.Val {
					if result == cel.DoubleType {
						a, b = a.ConvertToType(types.DoubleType), b.ConvertToType(types.DoubleType)
					}
					if prefer(a, b) {
						return a
					}
					return b
				})))
		}
	}
	return cel.Function(name, overloads...)
}
