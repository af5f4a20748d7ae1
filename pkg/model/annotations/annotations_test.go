package annotations_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/annotations"
)

func pointer[T any](v T) *T { return &v }

func TestReadPool(t *testing.T) {
	got, problems := annotations.ReadPool(map[string]string{
		"joiner.sh/disruption": "report", "joiner.sh/min-savings-usd": "0.5", "joiner.sh/min-savings-percent": "12%",
		"joiner.sh/hibernation-schedule": "0 20 * * *", "joiner.sh/hibernation-duration": "12h", "joiner.sh/time-zone": "Europe/Berlin",
		"joiner.sh/expire": "within-budgets", "joiner.sh/spot-to-spot-consolidation": "false", "joiner.sh/rebalance": "replace",
		"joiner.sh/limit-usd-per-hour": "12.50", "joiner.sh/node-overhead-usd-per-hour": "0", "example.com/team": "False",
	})
	want := annotations.NodePool{ReportOnly: true, MinSavingsUSD: 0.5, MinSavingsPercent: 12, HibernationSchedule: "0 20 * * *",
		HibernationDuration: 12 * time.Hour, TimeZone: "Europe/Berlin", ExpireWithinBudgets: true, SpotToSpot: pointer(false),
		Rebalance: "replace", LimitUSD: pointer(12.5), NodeOverheadUSD: pointer(0.0)}
	if diff := cmp.Diff(want, got); diff != "" || problems != nil {
		t.Errorf("problems %v, (-want +got):\n%s", problems, diff)
	}
}

// TestWhatIsNotKnownIsTold: a value in other capitals, of another language or of another annotation is none.
func TestWhatIsNotKnownIsTold(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"disruption", "Report", `annotation joiner.sh/disruption: "Report" is neither act nor report`},
		{"disruption", "", ""},
		{"min-savings-usd", "cheap", `annotation joiner.sh/min-savings-usd: "cheap" is not a number from 0 to 1000000`},
		{"min-savings-usd", "NaN", `annotation joiner.sh/min-savings-usd: "NaN" is not a number from 0 to 1000000`},
		{"min-savings-percent", "101", `annotation joiner.sh/min-savings-percent: "101" is not a number from 0 to 100%`},
		{"hibernation-duration", "12", `annotation joiner.sh/hibernation-duration: "12" is no duration longer than 0; write it like 12h`},
		{"expire", "Force", `annotation joiner.sh/expire: "Force" is neither force nor within-budgets`},
		{"spot-to-spot-consolidation", "False", `annotation joiner.sh/spot-to-spot-consolidation: "False" is neither true nor false`},
		{"rebalance", "Replace", `annotation joiner.sh/rebalance: "Replace" is neither ignore, event nor replace`},
		{"limit-usd-per-hour", "-1", `annotation joiner.sh/limit-usd-per-hour is "-1"; write USD per hour like 12.50`},
		{"node-overhead-usd-per-hour", "1 USD", `annotation joiner.sh/node-overhead-usd-per-hour is "1 USD"; write USD per hour like 12.50`},
	} {
		got, problems := annotations.ReadPool(map[string]string{"joiner.sh/" + c.key: c.value})
		message := ""
		for _, p := range problems {
			message += p.Message
		}
		if message != c.want || c.want != "" && !cmp.Equal(got, annotations.NodePool{}) {
			t.Errorf("%s=%q: got %q and %+v, want %q", c.key, c.value, message, got, c.want)
		}
	}
}

// TestListHasEveryKey compares the list with the constants that stand under the heading for people.
func TestListHasEveryKey(t *testing.T) {
	source, err := os.ReadFile("../../api/v1/annotations.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), "// On NodePools, written by people. ")
	rest, _, _ = strings.Cut(rest, "// On NodeClaims, written by Joiner.")
	var want, got []string
	for _, m := range regexp.MustCompile(`= "(joiner\.sh/[\w-]+)"`).FindAllStringSubmatch(rest, -1) {
		want = append(want, m[1])
	}
	for _, a := range annotations.ListPool() {
		got = append(got, a.Key)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 10 {
		t.Errorf("%d keys, (-annotations.go +ListPool):\n%s", len(want), diff)
	}
}

func TestUnknownOnPool(t *testing.T) {
	got := annotations.UnknownOnPool(map[string]string{"joiner.sh/min-saving-usd": "1", "joiner.sh/min-savings-usd": "1",
		"joiner.sh/zonal-shifts": "use1-az1", "karpenter.sh/nodepool-hash": "1", "example.com/x": "1"})
	if diff := cmp.Diff([]string{"joiner.sh/min-saving-usd"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestProblemsOfNodesAndPods(t *testing.T) {
	messages := func(all []annotations.Problem) (out []string) {
		for _, p := range all {
			out = append(out, p.Message)
		}
		return out
	}
	for _, c := range []struct {
		of   func(map[string]string) []annotations.Problem
		set  map[string]string
		want []string
	}{
		{annotations.NodeProblems, map[string]string{"karpenter.sh/do-not-disrupt": "true", "karpenter.sh/do-not-repair": ""}, nil},
		{annotations.NodeProblems, map[string]string{"karpenter.sh/do-not-disrupt": "1h", "karpenter.sh/do-not-repair": "True"}, []string{
			`karpenter.sh/do-not-disrupt="1h" protects nothing: on a node it is true, or not there`,
			`karpenter.sh/do-not-repair="True" spares nothing: on a node it is true, or not there`}},
		{annotations.PodProblems, map[string]string{"karpenter.sh/do-not-disrupt": "30m", "karpenter.sh/disruption-cost": "-5"}, nil},
		{annotations.PodProblems, map[string]string{"karpenter.sh/do-not-disrupt": "False", "karpenter.sh/disruption-cost": "high", "controller.kubernetes.io/pod-deletion-cost": "1.5"}, []string{
			`karpenter.sh/do-not-disrupt="False" protects nothing: it is neither true nor a positive duration like 30m`,
			`karpenter.sh/disruption-cost="high" counts as 0: it is no whole number of 32 bits`,
			`controller.kubernetes.io/pod-deletion-cost="1.5" counts as 0: it is no whole number of 32 bits`}},
	} {
		if diff := cmp.Diff(c.want, messages(c.of(c.set))); diff != "" {
			t.Errorf("%v: %s", c.set, diff)
		}
	}
}
