package discovery

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/providers/discovery"
	"joiner.sh/pkg/providers/invoke"
)

// A pass looks these services up beside EC2 and the API server. Each may swallow packets or be slow, alone or with
// another one: what the pass asks ends in time, and the pass has the longer part of its minute for nodes.
func TestServicesThatDoNotAnswerHoldNoPassUp(t *testing.T) {
	services := []string{"s3", "arc-zonal-shift", "monitoring", "lambda"}
	kinds := []awsemulator.FaultKind{awsemulator.Swallow}
	if !testing.Short() {
		kinds = append(kinds, awsemulator.Slow)
	}
	var passes sync.WaitGroup
	for i, one := range services {
		for _, other := range services[i:] {
			for _, kind := range kinds {
				r := start(t)
				r.SetCluster("https://127.0.0.1:1", []byte("ca"), "10.100.0.0/16")
				for _, s := range []string{one, other} {
					r.AddFault(awsemulator.Fault{Service: s, Kind: kind, Delay: awsemulator.Duration(time.Minute)})
				}
				passes.Go(func() {
					began := time.Now()
					r.lookUp(t)
					if took := time.Since(began); took > 14*time.Second {
						t.Errorf("%s of %s and %s: a pass waits %s", kind, one, other, took)
					}
				})
			}
		}
	}
	passes.Wait()
}

// lookUp asks what a pass asks in a new process: whatever fails, there is a catalog.
func (r *rig) lookUp(t *testing.T) {
	t.Helper()
	store := r.store()
	if c, _, err := store.ReadCatalog(t.Context()); err != nil || len(c.Types) == 0 {
		t.Errorf("the catalog has %d types, %v", len(c.Types), err)
	}
	shifts := &discovery.ZonalShifts{UnavailableOfferings: ledger{}, ARC: arczonalshift.NewFromConfig(r.cfg), Now: r.clock, Log: slog.New(slog.DiscardHandler),
		ARN:   func(context.Context) (string, error) { return "arn:aws:eks:us-west-2:111122223333:cluster/demo", nil },
		Zones: func(context.Context) (map[string]string, error) { return map[string]string{}, nil }}
	if _, err := shifts.ListUnavailable(t.Context()); err != nil {
		t.Error(err)
	}
	_, _ = discovery.Alarms{CloudWatch: cloudwatch.NewFromConfig(r.cfg)}.ReadAlarms(t.Context(), []string{"joiner-demo-Price"})
	_ = invoke.Function{Lambda: lambda.NewFromConfig(r.cfg), Name: "joiner-demo-lifecycle", Reason: "provision"}.Wake(t.Context())
}
