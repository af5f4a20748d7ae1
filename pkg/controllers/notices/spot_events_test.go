package notices_test

import (
	"context"
	"errors"
	"testing"

	"joiner.sh/pkg/model/spotpools"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// notedEvents plays the port.
type notedEvents struct {
	all []spotpools.Event
	err error
}

func (n *notedEvents) NoteSpotEvents(_ context.Context, events []spotpools.Event) error {
	n.all = append(n.all, events...)
	return n.err
}

func TestNoticesAboutSpotNodesAreNoted(t *testing.T) {
	for kind, want := range map[interruption.Kind]spotpools.Kind{interruption.Spot: spotpools.Interruption,
		interruption.Rebalance: spotpools.Recommendation, interruption.Ended: ""} {
		for _, failing := range []error{nil, errors.New("cut off")} {
			f := controllertest.RunningPods(t)
			n := controllertest.SpotNotice(f.World)
			n.Kind = kind
			claim := controllertest.ClaimOf(f, n.Instance)
			noted := &notedEvents{err: failing}
			i := f.Interruption(f.World.Ports(fake.Fault{}))
			i.Spot = noted
			if err := i.HandleNotices(context.Background(), n); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			if want == "" {
				if len(noted.all) != 0 {
					t.Errorf("%s: noted is %+v", kind, noted.all)
				}
				continue
			}
			pool := spotpools.Pool{Type: claim.Labels["node.kubernetes.io/instance-type"], Zone: claim.Labels["topology.kubernetes.io/zone"]}
			if len(noted.all) != 1 || noted.all[0].Kind != want || noted.all[0].Pool != pool || pool.Type == "" {
				t.Errorf("%s: noted is %+v, want one %s of %v", kind, noted.all, want, pool)
			}
		}
	}
}
