package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	awsv1 "joiner/pkg/api/aws/v1"
	v1 "joiner/pkg/api/v1"
	"joiner/pkg/disruption"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
)

// world is a cluster and an AWS account. The loop alone touches it.
type world struct {
	*eventLoop
	plan      seedPlan
	rules     cluster.Settings
	faults    faultSource
	functions map[string]*Function
	order     []*Function // as given

	alive   []*invocation
	started int
	over    bool // nothing is invoked any more
	calmed  time.Time

	version  int // of the last change; also a resourceVersion
	made     int // for names and UIDs
	news     []objectChange
	watchers []watchWaiter

	claims    map[string]*claim // by name
	byUID     map[string]*claim // every claim there ever was
	nodes     map[string]*node
	pods      map[string]*pod
	apps      []*app
	pools     []cluster.Pool
	account   awsAccount
	nodePools map[string]*v1.NodePool
	objects   map[string]*awsv1.EC2NodeClass
	leases    map[string]storedLease

	registrations map[string][]cluster.Registration // by pool
	disks         *disks
	taken         []string // of the quota
	memory        disruption.Memory

	events int
	book   *disruptionReport // of a day; nil in a storm

	market     instancetypes.Catalog
	types      map[string]instancetypes.Type
	machines   map[string]*machine
	tokens     map[string]fleetAnswer
	scarce     map[instancetypes.Offer]bool // sold out just now
	marks      []unavailableMark
	scheduling bool

	mutations map[string]int // calls that changed something, by name
	lastDeed  string         // the last of them
}

// memoryOverhead is the share of the memory that EC2's hypervisor takes.
const memoryOverhead = 0.075

// capacityLease is held by who creates capacity.
const capacityLease = "joiner-capacity"

type storedLease struct {
	holder string
	until  time.Time
}

// unavailableMark is a sold-out mark and when it was made.
type unavailableMark struct {
	instancetypes.UnavailableOffering
	made time.Time
}

func newWorld(seed uint64, market instancetypes.Catalog, keepAll bool) *world {
	w := &world{eventLoop: newEngine(seed, keepAll), functions: map[string]*Function{}, claims: map[string]*claim{},
		byUID: map[string]*claim{},
		nodes: map[string]*node{}, pods: map[string]*pod{}, objects: map[string]*awsv1.EC2NodeClass{},
		nodePools: map[string]*v1.NodePool{}, market: market,
		types: map[string]instancetypes.Type{}, machines: map[string]*machine{}, tokens: map[string]fleetAnswer{},
		scarce: map[instancetypes.Offer]bool{}, leases: map[string]storedLease{}, mutations: map[string]int{},
		registrations: map[string][]cluster.Registration{},
		faults:        faultSource{calls: map[CrashPoint]bool{}, hit: map[CrashPoint]bool{}}}
	class := instancetypes.Class{Name: "default", Ready: true, Family: instancetypes.AL2023, ZoneIDs: market.Zones,
		MemoryOverhead: memoryOverhead,
		Images:         []instancetypes.Image{{ID: "ami-1"}}}
	for _, t := range instancetypes.ResolveTypes(market, class, nil, time.Now()) {
		w.types[t.Name] = t
	}
	w.disks = drawDisks(w.eventLoop, seed, w.zoneNames())
	return w
}

// countMutation counts a call that changed something.
func (w *world) countMutation(call string) {
	w.mutations[call]++
	w.lastDeed = fmt.Sprintf("%s at %s", call, time.Since(w.began))
}

// mutatedBy is mutated for changes that somebody else may have made.
func (w *world) mutatedBy(by *invocation, call string) {
	if by != nil {
		w.countMutation(call)
	}
}

// totalMutations is how many calls changed something so far.
func (w *world) totalMutations() (n int) {
	for _, c := range w.mutations {
		n += c
	}
	return n
}

// RecordEvent records an event.
func (p *Ports) RecordEvent(ctx context.Context, e cluster.Event) error {
	return tryPort(ctx, p, "write event", fmt.Sprintf("%s %s %s: %s", e.Kind, e.Name, e.Reason, e.Message),
		func() error {
			p.w.events++
			p.w.checkUndone(e)
			return nil
		})
}

// Acquire takes the lease. It goes by the clock of the caller, as the real one.
func (p *Ports) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (func(context.Context) error, bool,
	error) {
	take, give := "acquire lease", "release lease"
	if name != capacityLease {
		take, give = "keep watch lease", "leave watch lease"
	}
	ok, err := callPort(ctx, p, take, name, func() (bool, error) {
		if l := p.w.leases[name]; l.holder != "" && l.holder != holder && time.Now().Before(l.until) {
			return false, nil
		}
		p.w.leases[name] = storedLease{holder: holder, until: time.Now().Add(ttl)}
		if name == capacityLease {
			p.inv.leased = time.Now()
		}
		return true, nil
	})
	if err != nil || !ok {
		return nil, false, err
	}
	release := func(ctx context.Context) error {
		return tryPort(ctx, p, give, name, func() error {
			if p.w.leases[name].holder == holder {
				delete(p.w.leases, name)
			}
			return nil
		})
	}
	return release, true, nil
}

// LeaseSign is a sign of life of who holds the lease.
func (p *Ports) LeaseSign(ctx context.Context, name string) (string, error) {
	return callPort(ctx, p, "ask who watches", name, func() (string, error) {
		if l := p.w.leases[name]; time.Now().Before(l.until) {
			return fmt.Sprint(l.holder, l.until), nil
		}
		return "", nil
	})
}

// ListUnavailable lists what is sold out.
func (p *Ports) ListUnavailable(ctx context.Context) ([]instancetypes.UnavailableOffering, error) {
	return callPort(ctx, p, "read sold-out marks", "", func() ([]instancetypes.UnavailableOffering, error) {
		var out []instancetypes.UnavailableOffering
		for _, m := range p.w.marks {
			if time.Now().Before(m.Until) {
				out = append(out, m.UnavailableOffering)
			}
		}
		return out, nil
	})
}

// MarkUnavailable marks offers as sold out.
func (p *Ports) MarkUnavailable(ctx context.Context, marks []instancetypes.UnavailableOffering, d time.Duration) error {
	return tryPort(ctx, p, "mark sold out", offersOf(marks), func() error {
		for _, m := range marks {
			m.Until = time.Now().Add(d)
			p.w.marks = append(p.w.marks, unavailableMark{m, time.Now()})
		}
		return nil
	})
}

func offersOf(marks []instancetypes.UnavailableOffering) string {
	var out []string
	for _, m := range marks {
		out = append(out, m.Offer.String())
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}

// ReadCatalog gives the catalog.
func (p *Ports) ReadCatalog(ctx context.Context) (c instancetypes.Catalog, why string, err error) {
	c, err = callPort(ctx, p, "read catalog", "", func() (instancetypes.Catalog, error) { return p.w.market, nil })
	return c, "", err
}
