package kubeletexpr_test

import (
	"strings"
	"testing"

	"joiner/pkg/model/kubeletexpr"
)

func large() kubeletexpr.Variables {
	return kubeletexpr.Variables{VCPUs: 2, MemoryMiB: 8192, DefaultENIs: 3, IPsPerENI: 10, MaxPods: 29, InstanceType: "m5.large"}
}

// TestExpressions are what infra/bench compares with cel-go on random ones; here stand those whose answer is known.
func TestExpressions(t *testing.T) {
	for text, want := range map[string]int64{
		"max_pods": 29, "vcpus * 30": 60, "max(60, vcpus * 30 + 1)": 61, "min(110, default_enis * (ips_per_eni - 1) + 2)": 29,
		"memory_mib / 100": 81, "double(memory_mib) * 0.01": 81, "max(1, 2.9)": 2, "min(3.5, 3)": 3,
		"1 + 2 * 3 - 4 % 3": 6, "-7 / 2": -3, "-7 % 3": -1, "- -3": 3, "-- (1 > 2) ? 1 : 2": 2, "2 - -3": 5, "10 - 3 - 2": 5, "(1 + 2) * 3": 9,
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
		"": "it ends too early", "vcpus +": "it ends too early", "vcpu": "vcpu is not known here", "1 2": `unexpected "2"`,
		"1 + 2.0": "no matching overload of + for (int, double)", "vcpus < 1.5 ? 1 : 2": "no matching overload of <",
		"instance_type": "of type string and not a number", "true ? 1 : 2.0": "no matching overload of ?:",
		"max(1)": "no matching overload of max", "floor(1.5)": "function floor is not known here", "1u": "no number that is known",
		"5.5 % 2.0": "no matching overload of %", "9223372036854775808": "no integer of 64 bits", "---9223372036854775808": "no integer of 64 bits", "{}": `"{" is not known here`,
		"[1, 'a'][0]": "several types", "r'a' == 'a' ? 1 : 2": "prefix r", "'a": "has no end", "1 == 1": "of type bool",
		"[1].exists(x, x > 0) ? 1 : 2": "x is not known here", "vcpus.size()": "no matching overload of size", "100Mi": "no number",
		strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300): "nested too deeply",
	} {
		if _, err := kubeletexpr.Compile(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: error %v, want %q", text, err, why)
		}
	}
}

func TestWhatComesToNothing(t *testing.T) {
	for text, why := range map[string]string{
		"1 / (vcpus - 2)": "division by zero", "1 % (vcpus - 2)": "division by zero", "1.0 / 0.0": "not finite", "1e300": "integer overflow",
		"9223372036854775807 + vcpus": "integer overflow", "9223372036854775807 * vcpus": "integer overflow",
		"-9223372036854775808 - vcpus": "integer overflow", "-9223372036854775808 / -1": "integer overflow",
		"[1][vcpus]": "index 2 of a list of 1", "int(1e30)": "integer overflow", "int('x')": "invalid syntax",
		"1 / 0 > 1 || vcpus == 3 ? 1 : 2": "division by zero", "instance_type.matches('(') ? 1 : 2": "no regular expression",
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
