package sim

import (
	"context"
	"math"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
)

// leaderLeases are the leases by which others say that they lead the cluster. Nobody does: what there is a hostile
// tenant wrote. Without one the functions do not look.
type leaderLeases struct {
	stored map[string]cluster.LeaderLease // by namespace
}

// Where functions look for a leader beside kube-system, and for how long a look is believed. The tenant may write
// there: he was first to take its name.
const (
	takenNamespace = "karpenter"
	leaderBelieved = 5 * time.Second
)

// writeLeases has the tenant write leases: one of his own namespace that he renews, and one for 68 years once.
func (h *hostileTrial) writeLeases(w *world, end time.Time) {
	l := &leaderLeases{stored: map[string]cluster.LeaderLease{}}
	w.api.leaders = l
	var renew func()
	renew = func() {
		l.stored[HostileNamespace] = cluster.LeaderLease{Holder: "evil", Renewed: time.Now(), Lasts: time.Hour}
		if time.Now().Before(end) {
			w.runAfter(10*time.Second, renew)
		}
	}
	renew()
	w.runAfter(time.Duration(h.rng.Int64N(int64(hostileFor))), func() {
		w.addTrace("the hostile tenant writes the lease of a leader for 68 years")
		l.stored[takenNamespace] = cluster.LeaderLease{Holder: "evil", Renewed: time.Now(),
			Lasts: math.MaxInt32 * time.Second}
	})
}

// permission returns an invocation's permission to write: none while somebody else leads the cluster.
func (p *leasePorts) permission() controllers.Permission {
	l := p.api.leaders
	if l == nil {
		return nil
	}
	turn := make(chan struct{}, 1)
	var looked time.Time
	may := false
	return func(ctx context.Context) (_ bool, err error) {
		turn <- struct{}{}
		defer func() { <-turn }()
		if !looked.IsZero() && time.Since(looked) < leaderBelieved {
			return may, nil
		}
		may, err = callPort(ctx, p.caller, "ask who leads", "", func() (bool, error) {
			now := time.Now()
			leads := l.stored[systemNamespace].Leads(now) || l.stored[takenNamespace].Leads(now)
			p.inv.faulty = p.inv.faulty || leads // it only observes, for a minute
			return !leads, nil
		})
		looked = time.Now()
		return may && err == nil, err
	}
}
