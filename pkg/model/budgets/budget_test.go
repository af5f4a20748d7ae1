package budgets_test

import (
	"strings"
	"testing"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestAllowed(t *testing.T) {
	always := func(nodes string) cluster.NodeBudget { return cluster.NodeBudget{Every: true, Nodes: nodes} }
	nights := cluster.NodeBudget{Every: true, Nodes: "0", Schedule: "0 9 * * mon-fri", Duration: 8 * time.Hour}
	const monday9, monday17, sunday = "2026-01-05T09:00:00Z", "2026-01-05T17:00:00Z", "2026-01-04T12:00:00Z"
	for _, c := range []struct {
		name    string
		budgets []cluster.NodeBudget
		zone    string
		reason  v1.DisruptionReason
		total   int
		now     string
		want    int
	}{
		{"no budget is no bound", nil, "", v1.DisruptionEmpty, 5, sunday, budgets.Unlimited},
		{"a percentage is rounded up", []cluster.NodeBudget{always("10%")}, "", v1.DisruptionEmpty, 11, sunday, 2},
		{"of no node it is none", []cluster.NodeBudget{always("10%")}, "", v1.DisruptionEmpty, 0, sunday, 0},
		{"the least counts", []cluster.NodeBudget{always("5"), always("3"), always("100%")}, "", v1.DisruptionEmpty, 9, sunday, 3},
		{"one for another reason does not", []cluster.NodeBudget{{Reasons: []string{"Drifted"}, Nodes: "0"}}, "", v1.DisruptionEmpty, 9, sunday, budgets.Unlimited},
		{"one for this reason does", []cluster.NodeBudget{{Reasons: []string{"Drifted"}, Nodes: "0"}}, "", v1.DisruptionDrifted, 9, sunday, 0},
		{"an empty list is for no reason", []cluster.NodeBudget{{Reasons: []string{}, Nodes: "0"}}, "", v1.DisruptionDrifted, 9, sunday, budgets.Unlimited},
		{"a schedule out of its hours", []cluster.NodeBudget{nights}, "", v1.DisruptionEmpty, 9, sunday, budgets.Unlimited},
		{"counts from its start", []cluster.NodeBudget{nights}, "", v1.DisruptionEmpty, 9, monday9, 0},
		{"not before it", []cluster.NodeBudget{nights}, "", v1.DisruptionEmpty, 9, "2026-01-05T08:59:59Z", budgets.Unlimited},
		{"and until its end", []cluster.NodeBudget{nights}, "", v1.DisruptionEmpty, 9, "2026-01-05T16:59:59Z", 0},
		{"which does not count", []cluster.NodeBudget{nights}, "", v1.DisruptionEmpty, 9, monday17, budgets.Unlimited},
		{"in winter Berlin's 9 is 8 UTC", []cluster.NodeBudget{nights}, "Europe/Berlin", v1.DisruptionEmpty, 9, "2026-01-05T08:00:00Z", 0},
		{"in summer it is 7", []cluster.NodeBudget{nights}, "Europe/Berlin", v1.DisruptionEmpty, 9, "2026-07-06T07:00:00Z", 0},
		{"on the day the clock jumps ahead as well", []cluster.NodeBudget{{Every: true, Nodes: "0", Schedule: "0 9 * * *", Duration: time.Hour}},
			"Europe/Berlin", v1.DisruptionEmpty, 9, "2026-03-29T07:00:00Z", 0},
		{"a start in the hour that is left out does not come", []cluster.NodeBudget{{Every: true, Nodes: "0", Schedule: "30 2 * * *", Duration: 10 * time.Minute}},
			"Europe/Berlin", v1.DisruptionEmpty, 9, "2026-03-29T01:30:00Z", budgets.Unlimited},
		{"a start in the hour that comes twice comes", []cluster.NodeBudget{{Every: true, Nodes: "0", Schedule: "30 2 * * *", Duration: 10 * time.Minute}},
			"Europe/Berlin", v1.DisruptionEmpty, 9, "2026-10-25T00:30:00Z", 0},
		{"twice", []cluster.NodeBudget{{Every: true, Nodes: "0", Schedule: "30 2 * * *", Duration: 10 * time.Minute}},
			"Europe/Berlin", v1.DisruptionEmpty, 9, "2026-10-25T01:30:00Z", 0},
		{"a duration over the change is as long as any", []cluster.NodeBudget{{Every: true, Nodes: "0", Schedule: "0 0 * * *", Duration: 6 * time.Hour}},
			"Europe/Berlin", v1.DisruptionEmpty, 9, "2026-10-25T03:59:59Z", 0},
		{"and ends an hour earlier by the clock on the wall", []cluster.NodeBudget{{Every: true, Nodes: "0", Schedule: "0 0 * * *", Duration: 6 * time.Hour}},
			"Europe/Berlin", v1.DisruptionEmpty, 9, "2026-10-25T04:00:00Z", budgets.Unlimited},
		{"by name", []cluster.NodeBudget{{Every: true, Nodes: "0", Schedule: "@daily", Duration: time.Hour}}, "", v1.DisruptionEmpty, 9, "2026-01-05T00:30:00Z", 0},
	} {
		got, err := budgets.AllowedDisruptions(cluster.Disruption{Budgets: c.budgets, TimeZone: c.zone}, c.reason, c.total, at(c.now))
		if err != nil || got != c.want {
			t.Errorf("%s: %d, %v; want %d", c.name, got, err, c.want)
		}
	}
}

func TestWhatCannotBeUnderstoodAllowsNothing(t *testing.T) {
	hour := time.Hour
	for _, c := range []struct {
		budget cluster.NodeBudget
		zone   string
		want   string
	}{
		{cluster.NodeBudget{Nodes: "many"}, "", `nodes "many" is neither`},
		{cluster.NodeBudget{Nodes: "-1"}, "", `nodes "-1" is neither`},
		{cluster.NodeBudget{Nodes: "101%"}, "", `nodes "101%" is neither`},
		{cluster.NodeBudget{Nodes: "1", Schedule: "0 9 * * *"}, "", "go together"},
		{cluster.NodeBudget{Nodes: "1", Duration: hour}, "", "go together"},
		{cluster.NodeBudget{Nodes: "1", Schedule: "0 25 * * *", Duration: hour}, "", `schedule "0 25 * * *"`},
		{cluster.NodeBudget{Nodes: "1", Schedule: "0 0 31 2 *", Duration: hour}, "", "never comes"},
		{cluster.NodeBudget{Nodes: "1", Schedule: "TZ=Asia/Tokyo 0 9 * * *", Duration: hour}, "", "use the annotation joiner.sh/time-zone"},
		{cluster.NodeBudget{Nodes: "1", Schedule: "0 9 * * *", Duration: hour}, "Mars/Base", `time zone "Mars/Base" is not known`},
		{cluster.NodeBudget{Nodes: "1", Schedule: "0 9 * * *", Duration: hour}, "Local", `time zone "Local" is not known`},
		{cluster.NodeBudget{Nodes: "1", Schedule: "0 9 * * * *", Duration: hour}, "", "expected exactly 5 fields"},
		{cluster.NodeBudget{Nodes: "1", Schedule: "0 9 * * *"}, "", "the duration is longer than 0"},
		{cluster.NodeBudget{Nodes: "99999999999999999999"}, "", "is neither a count"},
	} {
		d := cluster.Disruption{TimeZone: c.zone, Budgets: []cluster.NodeBudget{{Every: true, Nodes: "7"}, c.budget}}
		n, err := budgets.AllowedDisruptions(d, v1.DisruptionEmpty, 10, at("2026-01-05T09:00:00Z"))
		if n != 0 || err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "budget 2: ") {
			t.Errorf("%+v: %d, %v; want an error about budget 2 with %q", c.budget, n, err, c.want)
		}
		if err := budgets.ValidateBudgets(d); err == nil {
			t.Errorf("%+v: no complaint", c.budget)
		}
	}
	if err := budgets.ValidateBudgets(cluster.Disruption{TimeZone: "Mars/Base", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "10%"}}}); err == nil || !strings.Contains(err.Error(), "Mars/Base") {
		t.Errorf("a time zone that no schedule asks for: %v", err)
	}
	if err := budgets.ValidateBudgets(cluster.Disruption{Budgets: []cluster.NodeBudget{{Every: true, Nodes: "10%"}}}); err != nil {
		t.Error(err)
	}
	for _, schedule := range []string{"@daily", "@midnight", "@hourly", "@weekly", "@monthly", "@yearly", "@annually", "0 0 * * *", "0 0 1 1 *", "0 0 29 2 *", "0 9 * * mon-fri", "*/5 * * * *"} {
		for _, zone := range []string{"", "Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata"} {
			d := cluster.Disruption{TimeZone: zone, Budgets: []cluster.NodeBudget{{Every: true, Nodes: "0", Schedule: schedule, Duration: 8 * hour}}, SleepAt: schedule, SleepFor: 10 * time.Minute}
			if err := budgets.ValidateBudgets(d); err != nil {
				t.Errorf("%s in %q: %v", schedule, zone, err)
			}
		}
	}
}

func TestWhichNodesCount(t *testing.T) {
	initialized := []cluster.Condition{{Type: v1.ConditionInitialized, Status: "True"}, {Type: v1.ConditionRegistered, Status: "True"}}
	ending := append([]cluster.Condition{{Type: v1.ConditionInstanceTerminating, Status: "True"}}, initialized...)
	var s cluster.Snapshot
	add := func(name string, conditions []cluster.Condition, change func(*cluster.Node, *cluster.Claim)) {
		c := cluster.Claim{Name: name, Pool: "p", ProviderID: "id-" + name, Conditions: conditions}
		n := cluster.Node{Name: name, ProviderID: c.ProviderID, Ready: true}
		if change != nil {
			change(&n, &c)
		}
		s.Claims, s.Nodes = append(s.Claims, c), append(s.Nodes, n)
	}
	add("good", initialized, nil)
	add("better", initialized, nil)
	add("best", initialized, nil)
	add("new", nil, nil)
	add("unready", initialized, func(n *cluster.Node, _ *cluster.Claim) { n.Ready = false })
	add("tainted", initialized, func(n *cluster.Node, _ *cluster.Claim) {
		n.Taints = []cluster.Taint{{Key: v1.TaintDisrupted, Effect: "NoSchedule"}}
	})
	add("deleted", initialized, func(_ *cluster.Node, c *cluster.Claim) { c.Deleting = at("2026-01-05T09:00:00Z") })
	add("ending", ending, nil)
	s.Nodes = append(s.Nodes, cluster.Node{Name: "foreign", Labels: map[string]string{v1.LabelNodePool: "p"}})
	if got, want := budgets.CountNodes(s)["p"], (budgets.PoolCount{Total: 6, Gone: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	pool := cluster.Pool{Name: "p", Disruption: cluster.Disruption{Budgets: []cluster.NodeBudget{{Every: true, Nodes: "100%"}}}}
	if n, err := budgets.RemainingDisruptions(s, pool, v1.DisruptionEmpty); n != 3 || err != nil {
		t.Errorf("left %d, %v", n, err)
	}
	pool.Disruption.Budgets[0].Nodes = "1"
	if n, err := budgets.RemainingDisruptions(s, pool, v1.DisruptionEmpty); n != 0 || err != nil {
		t.Errorf("left %d, %v", n, err)
	}
}
