package notices_test

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"joiner.sh/events"
	"joiner.sh/pkg/controllers/notices"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// BenchmarkForeignNotice is what an event costs that is dropped without asking anybody: one of another account, and one
// about an instance that an earlier notice of this process was about. It fails if a port is asked.
func BenchmarkForeignNotice(b *testing.B) {
	sample, err := os.ReadFile("../../events/state-change.sample.json")
	if err != nil {
		b.Fatal(err)
	}
	for name, place := range map[string]notices.Location{"another account": {Account: "999999999999"}, "known": {}} {
		b.Run(name, func(b *testing.B) {
			f := controllertest.Functions{World: controllertest.NewWorld()}
			first := f.Interruption(f.World.Ports(fake.Fault{}))
			first.Foreign = &notices.ForeignInstances{}
			if err := first.Handle(context.Background(), events.KindStateChange, sample); err != nil {
				b.Fatal(err)
			}
			p := f.World.Ports(fake.Fault{})
			c := f.Interruption(p)
			c.Place, c.Foreign, c.Log = place, first.Foreign, slog.New(slog.DiscardHandler)
			for b.Loop() {
				if err := c.Handle(context.Background(), events.KindStateChange, sample); err != nil {
					b.Fatal(err)
				}
			}
			if calls := p.Calls(); len(calls) > 0 {
				b.Errorf("asked %v", calls)
			}
		})
	}
}
