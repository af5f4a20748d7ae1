package controllers_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/testing/controllertest"
)

// TestInstancesThatEndAtOnce are told of in EC2's words, and launched a few times in an hour, however long their pods
// wait. Once the cause is mended the pods get their nodes.
func TestInstancesThatEndAtOnce(t *testing.T) {
	f := controllertest.WaitingPods(t)
	f.World.EndEarly = func(launch.Order) string { return "Client.InternalError: Client error on launch" }
	began := f.World.Now()
	for f.World.Now().Sub(began) < time.Hour {
		f.Rest(t, 1)
	}
	if n := f.World.Launches; n < 2 || n > 20 {
		t.Errorf("%d instances were launched in an hour", n)
	}
	const want = "InternalError: EC2 ended its instance before the node joined: Client.InternalError: Client error on launch; as a rule a volume is encrypted"
	if !slices.ContainsFunc(f.World.Events("NodeClaim"), func(e string) bool { return strings.HasPrefix(e, want) }) {
		t.Errorf("no NodeClaim says why its instance ended: %v", f.World.Events("NodeClaim"))
	}
	f.World.EndEarly = nil
	f.Rest(t, 100)
	controllertest.NoProblems(t, f.World)
}
