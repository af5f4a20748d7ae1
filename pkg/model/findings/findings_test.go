package findings_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/findings"
)

// A check that finds nothing says that all is fine, and one that was not made says why.
func TestList(t *testing.T) {
	var l findings.List
	l.AddFine(0, "roles", "all are there")
	if l.AddUnknown("roles", "") || !l.AddUnknown("quotas", "access denied") {
		t.Errorf("a check is not made only where there is a reason: %v", l)
	}
	since := len(l)
	l.Add(findings.Broken, "pools", "there is none", "make one")
	l.AddFine(since, "pools", "all are ready")
	want := findings.List{{Level: findings.Fine, About: "roles", What: "all are there"},
		{Level: findings.Unknown, About: "quotas", What: "access denied"},
		{Level: findings.Broken, About: "pools", What: "there is none", Mend: "make one"}}
	if d := cmp.Diff(want, l); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if l.Count(findings.Broken) != 1 || l.Has(findings.Warning) || !l.Has(findings.Fine) {
		t.Errorf("counted wrong: %v", l)
	}
}
