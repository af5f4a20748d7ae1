package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// World is a snapshot in the making, with the instance types that every class sells. It plays at 2026-01-01 00:00 UTC
// in the zones a, b and c, with an EC2NodeClass called default.
type World struct {
	Snapshot cluster.Snapshot
	Types    []instancetypes.Type
}

// New returns a world without pods, nodes, pools and types, with the timeouts that the functions have.
func New() *World {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &World{Snapshot: cluster.Snapshot{
		Now: now, Classes: []instancetypes.Class{{Name: "default", Ready: true}},
		Namespaces: []cluster.Namespace{{Name: "default"}},
		Rules: cluster.Settings{LaunchTimeout: 5 * time.Minute, RegistrationTimeout: 15 * time.Minute,
			InitializationTimeout: 30 * time.Minute},
	}}
}

// Market returns what the class sells: all types of the world.
func (w *World) Market(string) []instancetypes.Type {
	return w.Snapshot.Catalog.AddCommitments(w.Types)
}

// Do carries out one directive of a scenario file. It returns false when it does not know the word, and errs about
// arguments that the word does not take.
func (w *World) Do(d *datadriven.TestData) (known bool, err error) {
	words := Words()
	if _, known := words[d.Cmd]; !known {
		return false, nil
	}
	if err := words.Check(d); err != nil {
		return true, err
	}
	dir := directive{cmd: d.Cmd, args: d.CmdArgs, lines: strings.Split(strings.TrimSpace(d.Input), "\n")}
	if d.Input == "" {
		dir.lines = nil
	}
	switch d.Cmd {
	case "type":
		err = w.addType(dir)
	case "types":
		err = w.labelTypes(dir)
	case "pool":
		err = w.addPool(dir)
	case "pods":
		err = w.addPods(dir)
	case "daemon":
		var p cluster.Pod
		p, err = pod(dir, dir.name())
		w.Snapshot.Daemons = append(w.Snapshot.Daemons, p)
	case "node":
		err = w.addNode(dir)
	case "claim":
		err = w.addClaim(dir)
	case "namespace":
		err = w.addNamespace(dir)
	case "budget":
		err = w.addBudget(dir)
	case "overlay":
		err = w.addOverlay(dir)
	case "commitment", "elsewhere":
		err = w.addCommitment(dir)
	case "unavailable":
		w.unavailable(dir)
	case "class":
		w.Snapshot.Classes = append(w.Snapshot.Classes, instancetypes.Class{Name: dir.name(),
			Ready: !dir.has("broken"), Message: dir.str("broken"), KubeletMinor: dir.num("kubelet", 0)})
	case "rules":
		w.Snapshot.Rules.IgnorePreferences = dir.has("ignore-preferences")
		w.Snapshot.Rules.RelaxMinValues = dir.has("best-effort")
		w.Snapshot.Rules.RegistrationTimeout = time.Duration(dir.num("registration-minutes", 0)) * time.Minute
		w.Snapshot.Rules.MaxClaims = int(dir.num("max-claims", 0))
		w.Snapshot.Rules.Ceiling = cluster.Ceiling{Nodes: int(dir.num("max-nodes", 0)),
			NodesPerMinute: int(dir.num("max-nodes-per-minute", 0)),
			MillionthsUSD:  1000 * int64(dir.num("max-milliusd", 0))}
		w.Snapshot.Rules.MaxSpotPoolFraction = float64(dir.num("spot-pool-share", 0)) / 100
	}
	return true, err
}

// addNamespace reads lines such as "label team=a".
func (w *World) addNamespace(d directive) error {
	n := cluster.Namespace{Name: d.name(), Labels: map[string]string{}}
	for _, l := range d.lines {
		k, v, found := strings.Cut(strings.TrimPrefix(l, "label "), "=")
		if !found || strings.Contains(k, " ") {
			return fmt.Errorf("namespace %s: line %q: want label KEY=VALUE", n.Name, l)
		}
		n.Labels[k] = v
	}
	w.Snapshot.Namespaces = append(w.Snapshot.Namespaces, n)
	return nil
}

// addBudget reads "budget web blocking allowed=1 always" with lines such as "app=web", the labels of its pods.
func (w *World) addBudget(d directive) error {
	pods, err := selector(d.lines)
	w.Snapshot.Budgets = append(w.Snapshot.Budgets, cluster.PodDisruptionBudget{
		Namespace: "default", Name: d.name(), FullyBlocking: d.has("blocking"), Selector: pods,
		DisruptionsAllowed: int32(d.num("allowed", 0)), AlwaysAllowUnready: d.has("always"),
	})
	return err
}

// directive is one directive of a scenario file.
type directive struct {
	cmd   string
	args  []datadriven.CmdArg
	lines []string
}

func (d directive) name() string {
	if len(d.args) == 0 {
		return d.cmd
	}
	return d.args[0].Key
}

func (d directive) list(arg string) []string {
	for _, a := range d.args {
		if a.Key == arg {
			return a.Vals
		}
	}
	return nil
}

func (d directive) has(arg string) bool {
	return slices.ContainsFunc(d.args, func(a datadriven.CmdArg) bool { return a.Key == arg })
}

func (d directive) str(arg string) string { return strings.Join(d.list(arg), " ") }

func (d directive) num(arg string, otherwise int64) int64 {
	n, err := strconv.ParseInt(d.str(arg), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

// amounts reads cpu (millicores), mem (MiB) and pods.
func (d directive) amounts() resources.List {
	return resources.List{CPU: d.num("cpu", 0), Memory: d.num("mem", 0) * resources.MiB, Pods: d.num("pods", 0)}
}

// addType reads "type m5.large cpu=2000 mem=8192 milliusd=96 spot=40 zones=(a,b) arch=arm64 reserved=(cr-1,a,3)" with
// lines such as "resource nvidia.com/gpu 1" and "label category m"; a label with several values has the one that the
// launch asks for.
func (w *World) addType(d directive) error {
	t := instancetypes.Type{Name: d.name(), Capacity: d.amounts(), EBSVolumes: d.num("volumes", 26)}
	t.Capacity.Pods = cmp.Or(t.Capacity.Pods, 110)
	zones := d.list("zones")
	if zones == nil {
		zones = []string{"a", "b", "c"}
	}
	arch := d.str("arch")
	if arch == "" {
		arch = "amd64"
	}
	capacities := []string{instancetypes.OnDemand}
	if d.has("spot") {
		capacities = append(capacities, instancetypes.Spot)
	}
	set := requirements.NewSet(requirements.Of(key("type"), t.Name), requirements.Of(key("arch"), arch),
		requirements.Of(key("os"), "linux"),
		requirements.Of(key("zone"), zones...), requirements.Of(key("zone-id"), zoneIDs(zones)...),
		requirements.Of(key("capacity"), capacities...),
		requirements.Of(key("cpu"), fmt.Sprint(t.Capacity.CPU/1000)))
	for _, l := range d.lines {
		f := strings.Fields(l)
		if len(f) > 2 && f[0] == "label" {
			set = set.And(requirements.Of(key(f[1]), f[2:]...))
			continue
		}
		if len(f) != 3 {
			return fmt.Errorf("type %s: line %q: want 3 words", t.Name, l)
		}
		n, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return fmt.Errorf("type %s: line %q: %w", t.Name, l, err)
		}
		t.Capacity = t.Capacity.With(f[1], n)
	}
	t.Requirements, t.Allocatable = set, t.Capacity
	for _, z := range zones {
		for _, c := range capacities {
			price := float64(d.num("milliusd", 0)) / 1000
			if c == instancetypes.Spot {
				price = float64(d.num("spot", 0)) / 1000
			}
			t.Offerings = append(t.Offerings, instancetypes.Offering{
				OfferingKey: instancetypes.OfferingKey{CapacityType: c, Type: t.Name, Zone: z},
				Price:       price, Available: true,
			})
		}
	}
	for _, z := range d.list("without") {
		t.Offerings = append(t.Offerings, instancetypes.Offering{
			OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.OnDemand, Type: t.Name, Zone: z},
			Price:       float64(d.num("milliusd", 0)) / 1000, Why: "the class has no subnet in " + z,
		})
	}
	if d.has("reserved") {
		t.Offerings = append(t.Offerings, reserved(t, d.list("reserved")))
		t.Requirements = t.Requirements.Without(key("capacity")).And(requirements.Of(key("capacity"),
			append(capacities, instancetypes.Reserved)...))
	}
	w.Types = append(w.Types, withZoneIDs(t))
	return nil
}

// withZoneIDs is the type with the id of its zone in each offering.
func withZoneIDs(t instancetypes.Type) instancetypes.Type {
	for i := range t.Offerings {
		t.Offerings[i].ZoneID = zoneID(t.Offerings[i].Zone)
	}
	return t
}

// labelTypes gives labels to all types that there are, with lines such as "label tenancy default dedicated".
func (w *World) labelTypes(d directive) error {
	for _, l := range d.lines {
		f := strings.Fields(l)
		if len(f) < 3 || f[0] != "label" {
			return fmt.Errorf("types: line %q: want label KEY VALUES", l)
		}
		for i := range w.Types {
			w.Types[i].Requirements = w.Types[i].Requirements.And(requirements.Of(key(f[1]), f[2:]...))
		}
	}
	return nil
}

// reserved reads "(cr-1,a,3)": a reservation's id, its zone and how many instances it has room for.
func reserved(t instancetypes.Type, words []string) instancetypes.Offering {
	words = append(slices.Clone(words), "", "", "")
	n, _ := strconv.ParseInt(words[2], 10, 64)
	return instancetypes.Offering{
		OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.Reserved, Type: t.Name, Zone: words[1]},
		Available:   n > 0,
		Reservation: &instancetypes.Reservation{ID: words[0], Type: t.Name, Zone: words[1], Kind: "default",
			Remaining: n},
	}
}

// unavailable reads "unavailable m5.large zone=a capacity=spot"; what is left out means all.
func (w *World) unavailable(d directive) {
	for i := range w.Types {
		w.Types[i].Offerings = slices.Clone(w.Types[i].Offerings)
		for j := range w.Types[i].Offerings {
			o := &w.Types[i].Offerings[j]
			if d.name() == o.Type && (!d.has("zone") || d.str("zone") == o.Zone) &&
				(!d.has("capacity") || d.str("capacity") == o.CapacityType) {
				o.Available, o.Why = false, "unavailable"
			}
		}
	}
}

// addPool reads "pool default weight=10 class=x static replicas=3 deleting not-ready=why unseen overhead=40", the last
// in thousandths of a USD per hour and node, with lines "require KEY OP VALUES", "taint T", "startup T", "label k=v",
// "annotation k=v", "sleep DURATION CRON" and "limit RESOURCE AMOUNT" (cpu in millicores, memory in MiB).
func (w *World) addPool(d directive) error {
	p := cluster.Pool{
		Name: d.name(), Class: "default", Ready: !d.has("not-ready"), Message: d.str("not-ready"),
		Weight: int32(d.num("weight", 0)),
		Static: d.has("static") || d.has("replicas"), Replicas: d.num("replicas", 0), Deleting: d.has("deleting"),
		Unseen: d.has("unseen"), Labels: map[string]string{}, Annotations: map[string]string{},
	}
	if d.has("class") {
		p.Class = d.str("class")
	}
	if d.has("overhead") {
		usd := float64(d.num("overhead", 0)) / 1000
		p.DeclaredNodeUSD = &usd
	}
	for _, l := range d.lines {
		word, rest, _ := strings.Cut(l, " ")
		k, v, _ := strings.Cut(rest, "=")
		switch word {
		case "require":
			r, err := requirement(rest)
			if err != nil {
				return err
			}
			p.Requirements = p.Requirements.And(r)
		case "taint":
			p.Taints = append(p.Taints, taint(rest))
		case "startup":
			p.StartupTaints = append(p.StartupTaints, taint(rest))
		case "label":
			p.Labels[k] = v
		case "annotation":
			p.Annotations[k] = v
		case "sleep":
			k, p.Disruption.SleepAt, _ = strings.Cut(rest, " ")
			var err error
			if p.Disruption.SleepFor, err = time.ParseDuration(k); err != nil {
				return fmt.Errorf("pool %s: line %q: %w", p.Name, l, err)
			}
		case "limit":
			k, v, _ = strings.Cut(rest, " ")
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				return fmt.Errorf("pool %s: line %q: %w", p.Name, l, err)
			}
			if k == resources.Memory {
				n *= resources.MiB
			}
			p.Limits, p.Limited = p.Limits.With(k, n), append(p.Limited, k)
		default:
			return fmt.Errorf("pool %s: %w", p.Name,
				unknownLine(l, "require", "taint", "startup", "label", "annotation", "sleep", "limit"))
		}
	}
	w.Snapshot.Pools = append(w.Snapshot.Pools, p)
	return nil
}
