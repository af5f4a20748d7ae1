package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/decisionlog/replay"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/provisioning"
	"joiner.sh/pkg/workload"
)

// storedPass writes a pass of provision about the shop into a file, changed before.
func storedPass(t *testing.T, change func(*plan.Plan)) string {
	t.Helper()
	w, err := workload.LoadWorkload(os.ReadFile, "testdata/shop.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ReadCatalog("")
	if err != nil {
		t.Fatal(err)
	}
	c.Types = []instancetypes.Facts{must(c.Find("m5.large")), must(c.Find("m5.xlarge"))}
	s, err := WorkloadSnapshot(w, c)
	if err != nil {
		t.Fatal(err)
	}
	s.Now = time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC)
	p := provisioning.Decide(s).Plan
	change(&p)
	of, err := replay.ProvisionPass(decisionlog.PassStamp{Cluster: "shop", Version: "3"}, s, p)
	if err != nil {
		t.Fatal(err)
	}
	b, err := of.Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "pass.json.gz")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func must(f instancetypes.Facts, _ bool) instancetypes.Facts { return f }

func TestReplay(t *testing.T) {
	same := storedPass(t, func(*plan.Plan) {})
	code, out, progress := run("replay", same)
	if code != 0 || !strings.Contains(out, "provision of 2026-11-22T01:02:03Z: same plan\n  launch on-demand m5.large in us-west-2a from pool general at 0.0982 USD/h, 0.0022 of it for volumes and addresses") {
		t.Errorf("exit %d\n%s%s", code, out, progress)
	}
	other := storedPass(t, func(p *plan.Plan) { p.Launches[0].Choice.Type = "m5.huge" })
	code, out, progress = run("replay", same, other)
	if code != 3 || !strings.Contains(out, "another plan\n- launch on-demand m5.huge") || !strings.Contains(out, "\n+ launch on-demand m5.large") || !strings.Contains(progress, "1 of 2 plans") {
		t.Errorf("exit %d\n%s%s", code, out, progress)
	}
	quiet := storedPass(t, func(p *plan.Plan) { p.LowerBoundUSD = 0.001 })
	if code, out, _ = run("replay", quiet, "-o", "json"); code != 3 || !strings.Contains(out, "the plans read alike and differ in values") {
		t.Errorf("exit %d\n%s", code, out)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"replay"}, "name files of stored passes"},
		{[]string{"replay", same, "--since", "2h"}, "name files of stored passes"},
		{[]string{"replay", "--since", "2h"}, "--since needs --catalog-bucket"},
		{[]string{"replay", "--catalog-bucket", "b"}, "--catalog-bucket needs --since"},
		{[]string{"replay", "--catalog-bucket", "b", "--since", "1h", "--until", "2h"}, "no time after"},
		{[]string{"replay", "testdata/shop.yaml"}, "testdata/shop.yaml: decode pass: its record"},
		{[]string{"replay", "testdata/shop.yaml"}, "; want a stored pass: an object below passes/ in the stack's bucket"},
		{[]string{"replay", "testdata/none"}, "no such file"},
	} {
		if code, out, progress := run(c.args...); code != 2 || out != "" || !strings.Contains(progress, c.want) {
			t.Errorf("%v: exit %d, %s%s", c.args, code, out, progress)
		}
	}
}
