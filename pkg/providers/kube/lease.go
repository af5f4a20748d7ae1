package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/cluster"
)

// Leases takes and reads leases.
type Leases struct {
	*connection
	// written are leases as this client wrote them last, by name. Nobody else writes to them as a rule, so that the
	// next write needs no look before: it is refused if somebody did.
	written *sync.Map
	totals  *pendingTotals
}

// Acquire takes the named lease for ttl (rounded up to seconds), or renews it if the holder has it. ok is false while
// another holder has it. One that was not released can be taken when it expired, by the clock of whoever asks: ttl must
// be much longer than clocks differ. release gives the lease back if it is still the holder's, and may be called more
// than once.
func (l Leases) Acquire(ctx context.Context, name, holder string,
	ttl time.Duration) (release func(context.Context) error, ok bool, err error) {
	release, ok, _, err = l.acquireExclusive(ctx, name, holder, ttl)
	return release, ok, err
}

// acquireExclusive is Acquire. It says besides that nobody else can have held the lease since this client wrote it
// last.
func (l Leases) acquireExclusive(ctx context.Context, name, holder string,
	ttl time.Duration) (release func(context.Context) error, ok, alone bool, err error) {
	what := apiCall{verb: "acquire", place: leasePath(), namespace: Namespace, name: name}
	if holder == "" || ttl <= 0 {
		return nil, false, false, fmt.Errorf("%s: a holder and a time to live are needed", what)
	}
	release = func(ctx context.Context) error { return l.giveBack(ctx, name, holder) }
	if last := l.lastWritten(name); last != nil && (holderOf(last) == "" || holderOf(last) == holder) {
		l.holdLease(last, holder, ttl)
		if err := l.putLease(ctx, what, last); err == nil {
			return release, true, true, nil
		} else if !isConflict(err) && !isNotFound(err) {
			return nil, false, false, err
		}
	}
	ok, err = l.acquireAnew(ctx, what, holder, ttl)
	return release, ok, false, err
}

// acquireAnew looks at the lease first.
func (l Leases) acquireAnew(ctx context.Context, what apiCall, holder string, ttl time.Duration) (ok bool, err error) {
	lease, err := l.readLease(ctx, what)
	if err != nil || l.heldByOther(lease, holder) {
		return false, err
	}
	l.holdLease(lease, holder, ttl)
	if lease.ResourceVersion == "" { // there is none
		lease.Namespace, lease.Name = Namespace, what.name
		err = l.createObject(ctx, what, lease, &coordinationv1.Lease{})
		if apierrors.IsAlreadyExists(err) { // another was faster, or it is the echo of our own request
			return l.confirmLease(ctx, what, holder)
		}
		return err == nil, err
	}
	err = l.putLease(ctx, what, lease)
	if isConflict(err) || isNotFound(err) {
		return l.confirmLease(ctx, what, holder)
	}
	return err == nil, err
}

// putLease writes a lease that was read or written in that version, and remembers it as written.
func (l Leases) putLease(ctx context.Context, what apiCall, lease *coordinationv1.Lease) error {
	written := &coordinationv1.Lease{}
	if err := l.replaceObject(ctx, what, "", lease, written); err != nil {
		l.written.Delete(what.name)
		return err
	}
	l.written.Store(what.name, written)
	return nil
}

// lastWritten is a copy of the lease as written, nil when it is not known.
func (l Leases) lastWritten(name string) *coordinationv1.Lease {
	stored, _ := l.written.Load(name)
	last, _ := stored.(*coordinationv1.Lease)
	return last.DeepCopy()
}

// readLease reads a lease. One that does not exist has no version and no holder.
func (l Leases) readLease(ctx context.Context, what apiCall) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	if err := l.getObject(ctx, what, lease); !isNotFound(err) {
		return lease, err
	}
	return &coordinationv1.Lease{}, nil
}

// confirmLease finds out whether a write that seemed to lose was our own, repeated after a lost reply.
func (l Leases) confirmLease(ctx context.Context, what apiCall, holder string) (bool, error) {
	lease, err := l.readLease(ctx, what)
	return err == nil && holderOf(lease) == holder && !l.leaseExpired(lease), err
}

func (l Leases) holdLease(lease *coordinationv1.Lease, holder string, ttl time.Duration) {
	now := metav1.NewMicroTime(l.now())
	seconds := int32((ttl + time.Second - 1) / time.Second)
	if holderOf(lease) != holder {
		transitions := int32(0)
		if lease.Spec.LeaseTransitions != nil {
			transitions = *lease.Spec.LeaseTransitions + 1
		}
		lease.Spec.AcquireTime, lease.Spec.LeaseTransitions = &now, &transitions
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &holder, &seconds, &now
}

func holderOf(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

func (l Leases) heldByOther(lease *coordinationv1.Lease, holder string) bool {
	h := holderOf(lease)
	return h != "" && h != holder && !l.leaseExpired(lease)
}

func (l Leases) leaseExpired(lease *coordinationv1.Lease) bool {
	if lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
		return true
	}
	return !l.now().Before(lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second))
}

// giveBack empties the lease if the holder still has it.
func (l Leases) giveBack(ctx context.Context, name, holder string) error {
	what := apiCall{verb: "release", place: leasePath(), namespace: Namespace, name: name}
	if last := l.lastWritten(name); last != nil {
		if holderOf(last) != holder {
			return nil
		}
		if err := l.putEmptied(ctx, what, last); err == nil || !isConflict(err) && !isNotFound(err) {
			return err
		}
	}
	lease, err := l.readLease(ctx, what)
	if err != nil || holderOf(lease) != holder {
		return err
	}
	err = l.putEmptied(ctx, what, lease)
	if isConflict(err) || isNotFound(err) {
		return nil // somebody took it meanwhile: it had expired
	}
	return err
}

// putEmptied writes a lease as nobody's, with the totals that its holder changed.
func (l Leases) putEmptied(ctx context.Context, what apiCall, lease *coordinationv1.Lease) error {
	lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.AcquireTime = nil, nil, nil
	made := l.applyTotals(lease)
	if err := l.putLease(ctx, what, lease); err != nil {
		return err
	}
	if made > 0 {
		l.dropTotals(what.name, made)
	}
	return nil
}

// leaderLease is somebody's lease as it is judged.
func leaderLease(l *coordinationv1.Lease) cluster.LeaderLease {
	out := cluster.LeaderLease{Holder: holderOf(l)}
	if l.Spec.RenewTime != nil && l.Spec.LeaseDurationSeconds != nil {
		out.Renewed, out.Lasts = l.Spec.RenewTime.Time, time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second
	}
	return out
}

// LeaseHolder names who holds a lease, of whatever namespace and program; empty when nobody does or there is none. One
// that was not renewed for a minute holds no more, whatever it says.
func (l Leases) LeaseHolder(ctx context.Context, namespace, name string) (string, error) {
	lease, err := l.readLease(ctx, apiCall{verb: "get", place: leasePath(), namespace: namespace, name: name})
	if err != nil || !leaderLease(lease).Leads(l.now()) {
		return "", err
	}
	return holderOf(lease), nil
}

// LeaseSign is a sign of life of who holds the named lease of our namespace: empty when nobody does, and other words
// after each renewal.
func (l Leases) LeaseSign(ctx context.Context, name string) (string, error) {
	lease, err := l.readLease(ctx, apiCall{verb: "get", place: leasePath(), namespace: Namespace, name: name})
	if err != nil || l.leaseExpired(lease) || holderOf(lease) == "" {
		return "", err
	}
	return holderOf(lease) + " " + lease.Spec.RenewTime.UTC().Format(time.RFC3339Nano), nil
}
