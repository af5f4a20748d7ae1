//go:build !karpenter_1_14

package expressions

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/aws/karpenter-provider-aws/pkg/cel"

	"joiner.sh/pkg/model/kubeletexpr"
)

// expressionWriter writes random CEL, mostly of types that fit.
type expressionWriter struct{ *rand.Rand }

func (w expressionWriter) one(of ...string) string { return of[w.IntN(len(of))] }

func (w expressionWriter) number(depth int) string {
	if depth == 0 {
		return w.one("vcpus", "memory_mib", "default_enis", "ips_per_eni", "max_pods", "0", "1", "2", "17", "007", "0x1F", "-3", "9223372036854775807", "-9223372036854775808")
	}
	n := func() string { return w.any(depth - 1) }
	switch w.IntN(12) {
	case 0:
		return n() + " + " + n()
	case 1:
		return n() + " - " + n()
	case 2:
		return n() + " * " + n()
	case 3:
		return n() + " / " + n()
	case 4:
		return n() + " % " + n()
	case 5:
		return "(" + n() + ")"
	case 6:
		return w.one("max", "min") + "(" + n() + ", " + n() + ")"
	case 7:
		return w.condition(depth-1) + " ? " + n() + " : " + n()
	case 8:
		return "-" + n()
	case 9:
		return "int(" + n() + ")"
	case 10:
		return w.one("size(instance_type)", "instance_type.size()", "size([1, 2])", "[3, 4, 5][1]", "[vcpus][default_enis]", "int('12')", "int('x')")
	}
	return n()
}

func (w expressionWriter) double(depth int) string {
	if depth == 0 {
		return w.one("1.5", ".25", "2.0", "1e3", "1e300", "0.0", "double(vcpus)", "double(memory_mib)", "double('0.5')")
	}
	d := func() string { return w.double(depth - 1) }
	return w.one(d()+" + "+d(), d()+" - "+d(), d()+" * "+d(), d()+" / "+d(), "max("+d()+", "+w.number(depth-1)+")", "min("+w.number(depth-1)+", "+d()+")", "-"+d())
}

// any is now and then a double, or of a type that does not fit.
func (w expressionWriter) any(depth int) string {
	switch w.IntN(24) {
	case 0:
		return w.one("instance_type", "'a'", "true", "[1]", "nobody", "1u", "floor(1.0)")
	case 1:
		return w.double(depth)
	}
	return w.number(depth)
}

func (w expressionWriter) condition(depth int) string {
	if depth <= 0 {
		return w.one("vcpus > 4", "instance_type.startsWith('m5.')", "instance_type == 'm5.large'", "instance_type in ['m5.large', \"c5.large\"]", "true", "false", "max_pods <= 29",
			"instance_type.contains('large')", "instance_type.endsWith('.metal')", "instance_type.matches('^[a-z]+[0-9]')", "vcpus in [2, 4]", "1.5 < 2.5", "vcpus != 2", "1 / (vcpus - 2) > 1", "'a' < 'b'", "vcpus < 2.5", "[1, 2] == [1, 2]")
	}
	c := func() string { return w.condition(depth - 1) }
	return w.one(c()+" && "+c(), c()+" || "+c(), "!("+c()+")", "("+c()+")", w.number(depth-1)+w.one(" < ", " <= ", " > ", " >= ", " == ", " != ")+w.number(depth-1))
}

// Random expressions compile where Karpenter's do, come to the same for the same instance types, and fail where its fail.
func TestExpressionsComeToWhatKarpentersDo(t *testing.T) {
	peer, err := cel.NewEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	types := []kubeletexpr.Variables{{VCPUs: 2, MemoryMiB: 8192, DefaultENIs: 3, IPsPerENI: 10, MaxPods: 29, InstanceType: "m5.large"},
		{VCPUs: 96, MemoryMiB: 393216, DefaultENIs: 15, IPsPerENI: 50, MaxPods: 737, InstanceType: "m5.metal"}, {InstanceType: "none"}}
	w := expressionWriter{rand.New(rand.NewPCG(1, 2))}
	compiled, evaluated, failed := 0, 0, 0
	for i := range 12_000 {
		text := w.any(1 + i%4)
		if w.IntN(8) == 0 {
			text = w.double(1 + i%3)
		}
		program, ourErr := kubeletexpr.Compile(text)
		theirErr := peer.ValidateExpression(text)
		if (ourErr == nil) != (theirErr == nil) {
			t.Errorf("%s\n compiled by Joiner with %v\n and by Karpenter with %v", text, ourErr, theirErr)
			continue
		}
		if ourErr != nil {
			continue
		}
		compiled++
		for _, v := range types {
			got, ourErr := program.Evaluate(v)
			want, theirErr := peer.EvaluateExpression(text, cel.InstanceTypeVars{VCPUs: v.VCPUs, MemoryMiB: v.MemoryMiB, DefaultENIs: v.DefaultENIs, IPsPerENI: v.IPsPerENI, MaxPods: v.MaxPods, InstanceType: v.InstanceType})
			// Karpenter converts a double that is too large to some integer
			if ourErr != nil && theirErr == nil && strings.HasSuffix(ourErr.Error(), "integer overflow") && (want < 0 || want == 1<<63-1) {
				continue
			}
			if (ourErr == nil) != (theirErr == nil) || got != want {
				t.Errorf("%s for %s\n is %d, %v in Joiner\n and %d, %v in Karpenter", text, v.InstanceType, got, ourErr, want, theirErr)
			}
			if evaluated++; ourErr != nil {
				failed++
			}
		}
		if t.Failed() && i > 2000 {
			t.Fatal("no more are tried")
		}
	}
	t.Logf("%d expressions compiled, %d values compared, %d of them errors", compiled, evaluated, failed)
	if compiled < 6_000 || failed < 1_000 {
		t.Errorf("only %d expressions compiled and %d failed", compiled, failed)
	}
}
