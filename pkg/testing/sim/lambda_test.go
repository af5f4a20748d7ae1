package sim

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestFunctionsThatWakeEachOtherAreSeen: two functions that wake each other for ever break an invariant before Lambda
// would drop them; the same wakes, each in a chain of its own, do not.
func TestFunctionsThatWakeEachOtherAreSeen(t *testing.T) {
	for name, circle := range map[string]bool{"in a circle": true, "each by its schedule": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := peaceful(t)
				defer w.endInvocations()
				for _, pair := range [][2]string{{"ping", "pong"}, {"pong", "ping"}} {
					w.lambda.functions[pair[0]] = &Function{Name: pair[0], Timeout: time.Minute,
						Run: func(ctx context.Context, in Invocation) error {
							if pair[0] == "pong" && !circle {
								return nil
							}
							return in.Ports.newWaker(pair[1]).Wake(ctx)
						}}
				}
				ping := w.lambda.functions["ping"]
				ping.Every = 10 * time.Second
				w.lambda.scheduleFunction(ping, time.Second)
				w.runUntil(time.Now().Add(3*time.Minute), w.network.admitRequest)
				if got := len(w.bad) > 0 && w.bad[0].Invariant == "functions wake each other in a circle"; got != circle {
					t.Errorf("the circle is seen: %t, violations %v", got, w.bad)
				}
				if !circle && len(w.bad) > 0 {
					t.Error(w.bad)
				}
			})
		})
	}
}
