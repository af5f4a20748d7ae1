package instancetypes

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	quantity "k8s.io/apimachinery/pkg/api/resource"

	"joiner.sh/pkg/model/kubeletexpr"
	"joiner.sh/pkg/model/lists"
)

// What expressions come to is rounded up, as Karpenter does, so that instance types share launch templates.
const (
	cpuStep      = 10      // millicores
	memoryStep   = 16      // MiB
	mostReserved = 1 << 30 // of any unit: more than any node has
)

// kubeletExpressions are the CEL expressions of a class.
type kubeletExpressions struct {
	maxPods      *kubeletexpr.Program            // nil for none
	kube, system map[string]*kubeletexpr.Program // by resource
}

// IsQuantity reports whether the text is an amount. Other texts in kubeReserved and systemReserved are expressions.
func IsQuantity(text string) bool {
	_, err := quantity.ParseQuantity(text)
	return err == nil
}

// HasExpressions reports whether a kubelet setting of the class is an expression.
func (c *Class) HasExpressions() bool {
	for _, m := range []map[string]string{c.KubeReserved, c.SystemReserved} {
		for _, text := range m {
			if !IsQuantity(text) {
				return true
			}
		}
	}
	return c.MaxPodsExpression != ""
}

func newExpressions(c Class) (e kubeletExpressions, err error) {
	if c.MaxPodsExpression != "" {
		if e.maxPods, err = kubeletexpr.Compile(c.MaxPodsExpression); err != nil {
			return e, fmt.Errorf("kubelet maxPods: %w", err)
		}
	}
	if e.kube, err = compileReserved("kubeReserved", c.KubeReserved); err != nil {
		return e, err
	}
	e.system, err = compileReserved("systemReserved", c.SystemReserved)
	return e, err
}

func compileReserved(field string, m map[string]string) (map[string]*kubeletexpr.Program, error) {
	var out map[string]*kubeletexpr.Program
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if IsQuantity(m[name]) {
			continue
		}
		p, err := kubeletexpr.Compile(m[name])
		if err != nil {
			return nil, fmt.Errorf("kubelet %s %s: %w", field, name, err)
		}
		if out == nil {
			out = map[string]*kubeletexpr.Program{}
		}
		out[name] = p
	}
	return out, nil
}

// expressionVariables returns what an expression of maxPods sees; those of reserved amounts see the pods it yields.
func expressionVariables(f *Facts, pods int64) kubeletexpr.Variables {
	return kubeletexpr.Variables{VCPUs: f.VCPU, MemoryMiB: f.MemoryMiB, DefaultENIs: f.DefaultCardENIs,
		IPsPerENI: f.IPv4PerENI, MaxPods: pods, InstanceType: f.Name}
}

// evaluateMaxPods returns the value of the expression of maxPods, where pods is the number without it.
func (e kubeletExpressions) evaluateMaxPods(f *Facts, pods int64) (int64, error) {
	n, err := e.maxPods.Evaluate(expressionVariables(f, pods))
	if err == nil && (n < 0 || n > math.MaxInt32) {
		err = fmt.Errorf("%d is no number of pods", n)
	}
	if err != nil {
		return 0, fmt.Errorf("kubelet maxPods: %w", err)
	}
	return n, nil
}

// evaluateReserved puts what the expressions come to in the place of their texts.
func evaluateReserved(field string, m map[string]string, programs map[string]*kubeletexpr.Program,
	v kubeletexpr.Variables) (map[string]string, error) {
	if len(programs) == 0 {
		return m, nil
	}
	out := maps.Clone(m)
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		n, err := programs[name].Evaluate(v)
		if err == nil && (n < 0 || n > mostReserved) {
			err = fmt.Errorf("%d is no amount of a node", n)
		}
		if err != nil {
			return nil, fmt.Errorf("kubelet %s %s: %w", field, name, err)
		}
		out[name] = reservedQuantity(name, n)
	}
	return out, nil
}

// reservedQuantity writes a result as a quantity in the unit in which expressions of the resource are written.
func reservedQuantity(name string, n int64) string {
	up := func(step int64) int64 { return (n + step - 1) / step * step }
	switch name {
	case "cpu":
		return fmt.Sprintf("%dm", up(cpuStep))
	case "memory":
		return fmt.Sprintf("%dMi", up(memoryStep))
	case "ephemeral-storage":
		return fmt.Sprintf("%dGi", n)
	}
	return fmt.Sprint(n)
}

// KubeletReserved are amounts that the kubelet of a type is told to keep, as "cpu=60m,memory=640Mi". They are empty
// where the class has no expressions, so that its own hold.
type KubeletReserved struct{ Kube, System string }

// ReservedAmounts are the amounts by resource.
func ReservedAmounts(text string) map[string]string {
	out := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if name, amount, ok := strings.Cut(pair, "="); ok {
			out[name] = amount
		}
	}
	return out
}

func joinReserved(m map[string]string) string {
	out := lists.Of(slices.Sorted(maps.Keys(m)), func(name string) string { return name + "=" + m[name] })
	return strings.Join(out, ",")
}

// limitsOf are the limits of the class for a type that takes so many pods.
func (r *typeResolver) limitsOf(f *Facts, pods int64) (l kubeletLimits, told KubeletReserved, err error) {
	l = r.limits
	e := l.expressions
	if len(e.kube) == 0 && len(e.system) == 0 {
		return l, told, nil
	}
	v := expressionVariables(f, pods)
	kube, err := evaluateReserved("kubeReserved", r.class.KubeReserved, e.kube, v)
	if err != nil {
		return l, told, err
	}
	system, err := evaluateReserved("systemReserved", r.class.SystemReserved, e.system, v)
	if err != nil {
		return l, told, err
	}
	if l.kube, err = parseReserved("kubeReserved", kube); err != nil {
		return l, told, err
	}
	if l.system, err = parseReserved("systemReserved", system); err != nil {
		return l, told, err
	}
	return l, KubeletReserved{Kube: joinReserved(kube), System: joinReserved(system)}, nil
}
