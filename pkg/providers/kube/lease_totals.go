package kube

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/timeseries"
)

const (
	mostTotalsText   = 128 << 10 // bytes of the annotation; the API server takes 256 KiB of all together
	mostTotalsJSON   = 8 << 20   // bytes unpacked
	mostTotalChanges = 100       // that wait for a write
)

// pendingTotals are changes of the totals on leases that wait for the lease to be given back.
type pendingTotals struct {
	mu   sync.Mutex
	name map[string][]func(timeseries.Totals)
}

func newPendingTotals() *pendingTotals {
	return &pendingTotals{name: map[string][]func(timeseries.Totals){}}
}

// ChangeTotals has the change made to the totals that stand on the lease, by the write that gives it back. It makes no
// request. A change may be made twice when a reply is lost, and not at all when the process ends before.
func (l Leases) ChangeTotals(name string, change func(timeseries.Totals)) {
	l.totals.mu.Lock()
	defer l.totals.mu.Unlock()
	if len(l.totals.name[name]) < mostTotalChanges {
		l.totals.name[name] = append(l.totals.name[name], change)
	}
}

// ReadTotals returns the totals that stand on a lease, nil for none and for what nobody can read.
func (l Leases) ReadTotals(ctx context.Context, name string) (timeseries.Totals, error) {
	lease, err := l.readLease(ctx, apiCall{verb: "get", place: leasePath(), namespace: Namespace, name: name})
	return unpackTotals(lease.Annotations[karpv1.AnnotationTotals]), err
}

// applyTotals makes the changes that wait on the lease, and says how many. Totals that take too much room are left as
// they were.
func (l Leases) applyTotals(lease *coordinationv1.Lease) (made int) {
	l.totals.mu.Lock()
	changes := l.totals.name[lease.Name]
	l.totals.mu.Unlock()
	if len(changes) == 0 {
		return 0
	}
	t := unpackTotals(lease.Annotations[karpv1.AnnotationTotals])
	if t == nil {
		t = timeseries.Totals{}
	}
	for _, change := range changes {
		change(t)
	}
	if text, err := packTotals(t); err == nil && len(text) <= mostTotalsText {
		if lease.Annotations == nil {
			lease.Annotations = map[string]string{}
		}
		lease.Annotations[karpv1.AnnotationTotals] = text
	}
	return len(changes)
}

// dropTotals forgets the first changes, which were written.
func (l Leases) dropTotals(name string, made int) {
	l.totals.mu.Lock()
	defer l.totals.mu.Unlock()
	l.totals.name[name] = l.totals.name[name][min(made, len(l.totals.name[name])):]
}

func packTotals(t timeseries.Totals) (string, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	err := errors.Join(json.NewEncoder(z).Encode(t), z.Close())
	return base64.StdEncoding.EncodeToString(b.Bytes()), err
}

func unpackTotals(text string) (t timeseries.Totals) {
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(packed) == 0 {
		return nil
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil || json.NewDecoder(io.LimitReader(z, mostTotalsJSON)).Decode(&t) != nil {
		return nil // whoever broke it must not stop us
	}
	maps.DeleteFunc(t, func(_ string, one *timeseries.Total) bool { return one == nil })
	return t
}
