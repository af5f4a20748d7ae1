package stack_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"joiner.sh/infra/stack"
)

// planned are the clusters of a cdk.json with such settings, by name.
func planned(t *testing.T, context map[string]any) map[string]stack.Props {
	t.Helper()
	app := awscdk.NewApp(&awscdk.AppProps{Context: &context, AnalyticsReporting: jsii.Bool(false)})
	all, err := stack.FromContext(app.Node())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]stack.Props{}
	for _, p := range all {
		out[p.Functions.ClusterName] = p
	}
	return out
}

// TestClustersShareAnAccount: thirty clusters of one account can all be deployed in what a usual account has, those of
// another account count for themselves, and one that is deployed alone reserves what it reserves with the others.
func TestClustersShareAnAccount(t *testing.T) {
	var clusters []any
	for i := range 30 {
		clusters = append(clusters, map[string]any{"clusterName": fmt.Sprintf("c%d", i), "account": "111122223333", "region": "eu-west-1"})
	}
	clusters = append(clusters, map[string]any{"clusterName": "alone", "account": "444455556666", "region": "eu-west-1"},
		map[string]any{"clusterName": "elsewhere", "account": "111122223333", "region": "us-east-1"})
	sum := 0
	for name, p := range planned(t, map[string]any{"clusters": clusters, "trigger": "push"}) {
		reserved := p.Stack.InterruptionConcurrency + p.ReservationConcurrency
		if name == "alone" || name == "elsewhere" {
			if reserved != 110 {
				t.Errorf("%s reserves %d for notices", name, reserved)
			}
			continue
		}
		sum += 5 + reserved // with push five functions run alone
	}
	if sum > 900 {
		t.Errorf("thirty clusters reserve %d, and an account lets 900 be reserved", sum)
	}
	one := planned(t, map[string]any{"clusters": clusters, "trigger": "push", "clusterName": "c7"})
	if got := one["c7"].Stack.InterruptionConcurrency; len(one) != 1 || got != 0 {
		t.Errorf("one of thirty: %d clusters, %d reserved", len(one), got)
	}
}
