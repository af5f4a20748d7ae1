package nodeclass_test

import (
	"testing"

	"joiner/pkg/nodeclass"
)

func TestUnsupported(t *testing.T) {
	const range126 = " is not within 1.26 to 1.36, which this version of Joiner is made for"
	for version, want := range map[string]string{
		"1.25": "Kubernetes 1.25" + range126, "1.26": "", "1.30+": "", "1.36": "", "1.37": "Kubernetes 1.37" + range126,
		"new": `read Kubernetes version "new": it is not of the form 1.36`,
	} {
		if got := nodeclass.UnsupportedReason(version); got != want {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
}
