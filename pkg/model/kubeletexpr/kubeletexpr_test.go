package kubeletexpr_test

import (
	"strings"
	"testing"

	"joiner.sh/pkg/model/kubeletexpr"
)

func large() kubeletexpr.Variables {
	return kubeletexpr.Variables{VCPUs: 2, MemoryMiB: 8192, DefaultENIs: 3, IPsPerENI: 10, MaxPods: 29, InstanceType: "m5.large"}
}

// TestExpressions has those whose answer is known; infra/lab/bench compares random ones with Karpenter's.
func TestExpressions(t *testing.T) {
	for text, want := range map[string]int64{
		"[1, 2, 3].exists(x, x > vcpus) ? 7 : 8": 7,
		"max_pods":                               29, "vcpus * 30": 60, "max(60, vcpus * 30 + 1)": 61, "min(110, default_enis * (ips_per_eni - 1) + 2)": 29,
		"memory_mib / 100": 81, "double(memory_mib) * 0.01": 81, "max(1, 2.9)": 2, "min(3.5, 3)": 3,
		"1 + 2 * 3 - 4 % 3": 6, "-7 / 2": -3, "-7 % 3": -1, "- -3": 3, "2 - -3": 5, "10 - 3 - 2": 5, "(1 + 2) * 3": 9,
		"vcpus > 4 ? 1 : vcpus > 1 ? 2 : 3":                  2,
		"instance_type.startsWith('m5.') ? 17 : 58":          17,
		`instance_type in ["m5.large", "m5.xlarge"] ? 1 : 2`: 1,
		"instance_type.matches('^m[0-9]\\\\.') ? 1 : 2":      1,
		"!(vcpus == 2) || max_pods != 29 ? 1 : 2":            2,
		"1 / 0 > 1 || vcpus == 2 ? 1 : 2":                    1, // an error does not matter where the other side decides
		"vcpus != 2 && 1 / 0 > 1 ? 1 : 2":                    2,
		"size(instance_type) + 'é'.size()":                   9,
		"[1, 2, 3][1]":                                       2, "1e2": 100, "0x1F": 31, "007": 7, ".5 + 1.5": 2,
		"-9223372036854775808": -9223372036854775808, "int(2.9) + int('4')": 6, "1 // it is one": 1, "'b' > 'a' ? 1 : 0": 1,
	} {
		p, err := kubeletexpr.Compile(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, err := p.Evaluate(large()); err != nil || got != want {
			t.Errorf("%s is %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestWhatDoesNotCompile(t *testing.T) {
	for text, why := range map[string]string{
		"": "character 0: Syntax error", "vcpus +": "character 8: Syntax error", "vcpu": "undeclared reference to 'vcpu'",
		"1 2": "extraneous input '2'", "1 + 2.0": "no matching overload for '_+_' applied to '(int, double)'",
		"vcpus < 1.5 ? 1 : 2": "no matching overload for '_<_'", "instance_type": "of type string and not a number",
		"true ? 1 : 2.0": "no matching overload for '_?_:_'", "max(1)": "no matching overload for 'max'",
		"floor(1.5)": "undeclared reference to 'floor'", "1u": "of type uint and not a number",
		"5.5 % 2.0": "no matching overload for '_%_'", "9223372036854775808": "invalid int literal",
		"{}": "of type map(dyn, dyn) and not a number", "[1, 'a'][0]": "of type dyn and not a number",
		"'a": "token recognition error", "1 == 1": "of type bool", "vcpus.size()": "no matching overload for 'size'",
		"100Mi": "extraneous input 'Mi'",
		strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300): "recursion limit",
	} {
		if _, err := kubeletexpr.Compile(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: error %v, want %q", text, err, why)
		}
	}
}

func TestWhatComesToNothing(t *testing.T) {
	for text, why := range map[string]string{
		"1 / (vcpus - 2)": "division by zero", "1 % (vcpus - 2)": "modulus by zero", "1.0 / 0.0": "not finite", "1e300": "integer overflow",
		"9223372036854775807 + vcpus": "integer overflow", "9223372036854775807 * vcpus": "integer overflow",
		"-9223372036854775808 - vcpus": "integer overflow", "-9223372036854775808 / -1": "integer overflow",
		"[1][vcpus]": "index out of bounds: 2", "int(1e30)": "integer overflow", "int('x')": "type conversion error",
		"1 / 0 > 1 || vcpus == 3 ? 1 : 2": "division by zero",
		"[1, 2, 3, 4].map(a, [1, 2, 3, 4].map(b, [1, 2, 3, 4].map(c, [1, 2, 3, 4].map(d, [1, 2, 3, 4].map(e, a))))).size()": "cost limit exceeded",
		"instance_type.matches('(') ? 1 : 2": "error parsing regexp",
	} {
		p, err := kubeletexpr.Compile(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if n, err := p.Evaluate(large()); err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "for m5.large") {
			t.Errorf("%s is %d, error %v, want %q", text, n, err, why)
		}
	}
}
