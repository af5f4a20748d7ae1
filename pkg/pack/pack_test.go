package pack

import (
	"testing"

	"joiner/pkg/plan"
	"joiner/pkg/scenario"
)

func decide(w *scenario.World) plan.Plan { return pods(w.Snapshot, w.Market) }

func TestScenarios(t *testing.T) { scenario.Run(t, "testdata", decide) }
