package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/jedib0t/go-pretty/v6/table"

	"joiner.sh/pkg/cli/status"
)

// readFunctions asks Lambda for the functions of the stack; for none without a cluster.
func (f statusFlags) readFunctions(ctx context.Context) ([]status.Function, error) {
	if f.stack.cluster == "" {
		return nil, nil
	}
	cfg, err := loadAWSConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("load aws configuration: %w", err)
	}
	found := functionFacts(ctx, lambda.NewFromConfig(cfg), f.stack.names())
	if found.Unknown != "" {
		return nil, fmt.Errorf("ask for the functions of cluster %s: %w", f.stack.cluster, errors.New(found.Unknown))
	}
	var out []status.Function
	for _, one := range found.List {
		s := status.Function{Name: one.Name, State: "missing"}
		if one.Found {
			s.Version, s.State = one.Version, one.State
		}
		if !one.Changed.IsZero() {
			s.Age = time.Since(one.Changed)
		}
		out = append(out, s)
	}
	return out, nil
}

func functionTable(all []status.Function) string {
	t := newTable("function", "version", "age", "state")
	for _, f := range all {
		age := ""
		if f.Age > 0 {
			age = status.FormatAge(f.Age)
		}
		t.AppendRow(table.Row{f.Name, cmp.Or(f.Version, "not said"), age, f.State})
	}
	return t.Render()
}
