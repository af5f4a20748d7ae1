package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	awsv1 "joiner/pkg/api/aws/v1"
	v1 "joiner/pkg/api/v1"
	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/disrupt"
)

// world is a cluster and an AWS account. The loop alone touches it.
type world struct {
	*engine
	plan      plan
	rules     cluster.Rules
	faults    faults
	functions map[string]*Function
	order     []*Function // as given

	alive   []*invocation
	started int
	over    bool // nothing is invoked any more
	calmed  time.Time

	version  int // of the last change; also a resourceVersion
	made     int // for names and UIDs
	news     []change
	watchers []watcher

	claims    map[string]*claim // by name
	byUID     map[string]*claim // every claim there ever was
	nodes     map[string]*node
	pods      map[string]*pod
	apps      []*app
	pools     []cluster.Pool
	account   account
	nodePools map[string]*v1.NodePool
	objects   map[string]*awsv1.EC2NodeClass
	leases    map[string]lease

	registrations map[string][]cluster.Registration // by pool
	disks         *disks
	taken         []string // of the quota
	memory        disrupt.Memory

	events int
	book   *daybook // of a day; nil in a storm

	market     catalog.Catalog
	types      map[string]catalog.Type
	machines   map[string]*machine
	tokens     map[string]fleetAnswer
	scarce     map[catalog.Offer]bool // sold out just now
	marks      []mark
	scheduling bool

	mutations map[string]int // calls that changed something, by name
	lastDeed  string         // the last of them
}

// memoryOverhead is the share of the memory that EC2's hypervisor takes.
const memoryOverhead = 0.075

// capacityLease is held by who creates capacity.
const capacityLease = "joiner-capacity"

type lease struct {
	holder string
	until  time.Time
}

// mark is a sold-out mark and when it was made.
type mark struct {
	catalog.Mark
	made time.Time
}

func newWorld(seed uint64, market catalog.Catalog, keepAll bool) *world {
	w := &world{engine: newEngine(seed, keepAll), functions: map[string]*Function{}, claims: map[string]*claim{}, byUID: map[string]*claim{},
		nodes: map[string]*node{}, pods: map[string]*pod{}, objects: map[string]*awsv1.EC2NodeClass{}, nodePools: map[string]*v1.NodePool{}, market: market,
		types: map[string]catalog.Type{}, machines: map[string]*machine{}, tokens: map[string]fleetAnswer{},
		scarce: map[catalog.Offer]bool{}, leases: map[string]lease{}, mutations: map[string]int{}, registrations: map[string][]cluster.Registration{},
		faults: faults{calls: map[CrashPoint]bool{}, hit: map[CrashPoint]bool{}}}
	class := catalog.Class{Name: "default", Ready: true, Family: catalog.AL2023, ZoneIDs: market.Zones, MemoryOverhead: memoryOverhead,
		Images: []catalog.Image{{ID: "ami-1"}}}
	for _, t := range catalog.Resolve(market, class, nil, time.Now()) {
		w.types[t.Name] = t
	}
	w.disks = drawDisks(w.engine, seed, w.zones())
	return w
}

// mutated counts a call that changed something.
func (w *world) mutated(call string) {
	w.mutations[call]++
	w.lastDeed = fmt.Sprintf("%s at %s", call, time.Since(w.began))
}

// mutatedBy is mutated for changes that somebody else may have made.
func (w *world) mutatedBy(by *invocation, call string) {
	if by != nil {
		w.mutated(call)
	}
}

// total is how many calls changed something so far.
func (w *world) total() (n int) {
	for _, c := range w.mutations {
		n += c
	}
	return n
}

// Event records an event.
func (p *Ports) Event(ctx context.Context, e cluster.Event) error {
	return try(ctx, p, "write event", fmt.Sprintf("%s %s %s: %s", e.Kind, e.Name, e.Reason, e.Message), func() error {
		p.w.events++
		p.w.checkUndone(e)
		return nil
	})
}

// Acquire takes the lease. It goes by the clock of the caller, as the real one.
func (p *Ports) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (func(context.Context) error, bool, error) {
	take, give := "acquire lease", "release lease"
	if name != capacityLease {
		take, give = "keep vigil", "leave vigil"
	}
	ok, err := do(ctx, p, take, name, func() (bool, error) {
		if l := p.w.leases[name]; l.holder != "" && l.holder != holder && time.Now().Before(l.until) {
			return false, nil
		}
		p.w.leases[name] = lease{holder: holder, until: time.Now().Add(ttl)}
		if name == capacityLease {
			p.inv.leased = time.Now()
		}
		return true, nil
	})
	if err != nil || !ok {
		return nil, false, err
	}
	release := func(ctx context.Context) error {
		return try(ctx, p, give, name, func() error {
			if p.w.leases[name].holder == holder {
				delete(p.w.leases, name)
			}
			return nil
		})
	}
	return release, true, nil
}

// Sign is a sign of life of who holds the lease.
func (p *Ports) Sign(ctx context.Context, name string) (string, error) {
	return do(ctx, p, "ask who watches", name, func() (string, error) {
		if l := p.w.leases[name]; time.Now().Before(l.until) {
			return fmt.Sprint(l.holder, l.until), nil
		}
		return "", nil
	})
}

// Marks lists what is sold out.
func (p *Ports) Marks(ctx context.Context) ([]catalog.Mark, error) {
	return do(ctx, p, "read sold-out marks", "", func() ([]catalog.Mark, error) {
		var out []catalog.Mark
		for _, m := range p.w.marks {
			if time.Now().Before(m.Until) {
				out = append(out, m.Mark)
			}
		}
		return out, nil
	})
}

// Add marks offers as sold out.
func (p *Ports) Add(ctx context.Context, marks []catalog.Mark, d time.Duration) error {
	return try(ctx, p, "mark sold out", offersOf(marks), func() error {
		for _, m := range marks {
			m.Until = time.Now().Add(d)
			p.w.marks = append(p.w.marks, mark{m, time.Now()})
		}
		return nil
	})
}

func offersOf(marks []catalog.Mark) string {
	var out []string
	for _, m := range marks {
		out = append(out, m.Offer.String())
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}

// Catalog gives the catalog.
func (p *Ports) Catalog(ctx context.Context) (c catalog.Catalog, why string, err error) {
	c, err = do(ctx, p, "read catalog", "", func() (catalog.Catalog, error) { return p.w.market, nil })
	return c, "", err
}
