package lifecycle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/lifecycle"
	"joiner.sh/pkg/testing/syntax"
)

func scenarioSyntax() syntax.Grammar {
	return syntax.NewGrammar(nil, "claim NAME id= age= launched= registered= initialized= deleting= no-finalizer expire= grace= uid= node= deadline= tagged half-tagged "+
		"by-hand unlabelled unnamed names= in= pool= partition partition= batch= zone= type=",
		"node NAME id= not-ready deleting= ready= no-finalizer foreign unlabelled",
		"pod NAME on= owner= critical deleting= grace=# phase= protect= started= volume= hold= age= starting",
		"instance NAME state= age= claim= uid= sold= partition= batch= dns= why=", "pool NAME uid= nodes=# cpu=# gently deleting in= told= unhealthy=", "class zones=", "shifted ids=", "unasked", "told", "pdb NAME allowed=#",
		"attach VOLUME to= claim= shared", "impaired INSTANCE since= system", "change INSTANCE at= code=", "reservation ID ends= block",
		"rules repair detach=", "devices", "detaching", "clear", "refuse POD", "detach VOLUME", "next", "run SECONDS", "turn INSTANCE state= type= why=", "request CLAIM", "await SECONDS", "stops")
}

// TestScenarios plays the files in testdata. "next" prints one step, "run SECONDS" lets passes take effect on the model
// and prints them with the time, and what is left at the end.
func TestScenarios(t *testing.T) {
	words := scenarioSyntax()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		m := newModel(cluster.Snapshot{Now: start(), Rules: rules()})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := words.Check(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			a := newArgs(t, d)
			switch d.Cmd {
			case "claim":
				m.s.Claims = append(m.s.Claims, claimFrom(a))
			case "node":
				m.s.Nodes = append(m.s.Nodes, nodeFrom(a))
			case "pod":
				m.s.Pods = append(m.s.Pods, podFrom(a))
			case "instance":
				m.s.Instances = append(m.s.Instances, instanceFrom(a))
			case "pool":
				m.s.Pools = append(m.s.Pools, poolFrom(a))
			case "refuse": // the eviction API refuses the pod
				m.budget[a.name] = true
			case "pdb":
				m.s.Budgets = append(m.s.Budgets, budgetFrom(a))
			case "attach":
				m.s.Attachments = append(m.s.Attachments, attachmentFrom(a))
			case "detach":
				m.s.Attachments = slices.DeleteFunc(m.s.Attachments, func(at cluster.Attachment) bool { return at.Volume == a.name })
			case "impaired":
				m.s.Impaired = append(m.s.Impaired, impairmentFrom(a))
			case "change":
				m.s.Changes = append(m.s.Changes, changeFrom(a))
			case "told": // of all that fails a check or has a date
				m.s.StatusAt = m.s.Now
			case "reservation":
				m.s.Classes = []instancetypes.Class{reservationFrom(a)}
			case "class":
				m.s.Classes = []instancetypes.Class{classFrom(a)}
			case "shifted":
				m.s.Shifts = shiftsFrom(a)
			case "unasked":
				m.s.Shifts = nil
			case "devices":
				m.s.Devices = devicesFrom(a)
			case "turn": // whoever did it
				m.turn(a.name, func(i *cluster.Instance) {
					i.State, i.Type, i.StateReason = a.str("state", i.State), a.str("type", i.Type), a.str("why", i.StateReason)
				})
			case "request": // provision asked EC2 to start its instance, and died
				for i := range m.s.Claims {
					if c := &m.s.Claims[i]; c.Name == a.name {
						c.Annotations = with(c.Annotations, v1.AnnotationStartRequested, m.s.Now.Format(time.RFC3339))
					}
				}
			case "stops":
				m.stops = true
			case "await":
				seconds, err := strconv.Atoi(a.name)
				if err != nil {
					t.Fatal(err)
				}
				m.tick(time.Duration(seconds) * time.Second)
			case "rules":
				m.s.Rules = rulesFrom(a)
			case "detaching":
				return strings.Join(lifecycle.DetachingNodes(m.s), " ") + "\n"
			case "clear":
				m = newModel(cluster.Snapshot{Now: start(), Rules: rules()})
			case "next":
				next := lifecycle.Next(m.s)
				check(t, m.s, next)
				return text(next)
			case "run":
				seconds, err := strconv.Atoi(a.name)
				if err != nil {
					t.Fatal(err)
				}
				out := m.run(seconds)
				for _, e := range m.errs {
					t.Errorf("%s: %s", d.Pos, e)
				}
				return out + m.rest()
			default:
				t.Fatalf("%s: unknown word %q", d.Pos, d.Cmd)
			}
			return "ok\n"
		})
	})
}

func text(p lifecycle.Plan) string {
	var b strings.Builder
	for _, a := range p.Actions {
		b.WriteString(a.String())
		if a.Every > 0 {
			fmt.Fprintf(&b, " (every %s)", a.Every)
		}
		b.WriteByte('\n')
	}
	if p.Busy {
		b.WriteString("busy\n")
	}
	if b.Len() == 0 {
		return "nothing to do\n"
	}
	return b.String()
}

// check fails the test on what no step may do, and on a step that depends on the order of the snapshot or on the try.
func check(t *testing.T, s cluster.Snapshot, p lifecycle.Plan) {
	t.Helper()
	for _, f := range listWrongSteps(s, p) {
		t.Error(f)
	}
	if diff := cmp.Diff(p, lifecycle.Next(s)); diff != "" {
		t.Errorf("the second try differs:\n%s", diff)
	}
	for seed := range uint64(3) {
		if diff := cmp.Diff(p, lifecycle.Next(shuffled(s, seed))); diff != "" {
			t.Errorf("shuffled with seed %d the step differs:\n%s", seed, diff)
		}
	}
}

func shuffled(s cluster.Snapshot, seed uint64) cluster.Snapshot {
	r := rand.New(rand.NewPCG(seed, 1))
	s.Claims, s.Nodes, s.Pods, s.Instances = mixed(r, s.Claims), mixed(r, s.Nodes), mixed(r, s.Pods), mixed(r, s.Instances)
	s.Pools, s.Budgets, s.Attachments, s.Impaired = mixed(r, s.Pools), mixed(r, s.Budgets), mixed(r, s.Attachments), mixed(r, s.Impaired)
	s.Changes = mixed(r, s.Changes)
	return s
}

func mixed[T any](r *rand.Rand, list []T) []T {
	out := slices.Clone(list)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// listWrongSteps says what is wrong with a step whatever the cluster looks like.
func listWrongSteps(s cluster.Snapshot, p lifecycle.Plan) []string {
	var bad []string
	for _, a := range p.Actions {
		for _, missing := range strangers(s, a) {
			bad = append(bad, fmt.Sprintf("%q names %s, which is not in the snapshot", a, missing))
		}
		for _, c := range s.Claims {
			live := c.Deleting.IsZero()
			switch {
			case a.Do == plan.Terminate && live && c.ProviderID == providerID(a.Instance):
				bad = append(bad, fmt.Sprintf("%q ends the instance of the live claim %s", a, c.Name))
			case a.Do == plan.ReleaseClaim && a.Claim == c.Name && live:
				bad = append(bad, fmt.Sprintf("%q releases a live claim", a))
			case a.Do == plan.ReleaseClaim && a.Claim == c.Name:
				bad = append(bad, survivors(s, c, a)...)
			}
		}
	}
	return bad
}

// strangers are the objects an action names that the snapshot does not have. A claim may know an instance that EC2
// hides.
func strangers(s cluster.Snapshot, a plan.Action) []string {
	var out []string
	if a.Claim != "" && !slices.ContainsFunc(s.Claims, func(c cluster.Claim) bool { return c.Name == a.Claim }) {
		out = append(out, "claim "+a.Claim)
	}
	if a.Node != "" && !slices.ContainsFunc(s.Nodes, func(n cluster.Node) bool { return n.Name == a.Node }) {
		out = append(out, "node "+a.Node)
	}
	if a.Pod != "" && !slices.ContainsFunc(s.Pods, func(p cluster.Pod) bool { return p.Key() == a.Pod }) {
		out = append(out, "pod "+a.Pod)
	}
	known := slices.ContainsFunc(s.Instances, func(i cluster.Instance) bool { return i.ID == a.Instance }) ||
		slices.ContainsFunc(s.Claims, func(c cluster.Claim) bool { return c.Name == a.Claim && c.ProviderID == providerID(a.Instance) })
	if a.Instance != "" && !known {
		out = append(out, "instance "+a.Instance)
	}
	return out
}

// survivors are the instances that have not ended yet for a claim which is being released, shut down or not. One that
// another claim has by its provider id is not for this claim to wait for, unless that one is being deleted too and this
// one has the same id.
func survivors(s cluster.Snapshot, c cluster.Claim, a plan.Action) []string {
	var bad []string
	for _, i := range s.Instances {
		runs := i.State != "terminated"
		other := slices.ContainsFunc(s.Claims, func(o cluster.Claim) bool {
			return o.UID != c.UID && o.ProviderID == i.ProviderID() && (o.Deleting.IsZero() || c.ProviderID != i.ProviderID())
		})
		if runs && !other && (i.ProviderID() == c.ProviderID || i.ClaimUID == c.UID) {
			bad = append(bad, fmt.Sprintf("%q while instance %s is %s", a, i.ID, i.State))
		}
	}
	return bad
}

// random is a snapshot of claims, nodes, pods and instances in any state, related and unrelated. Provider ids, owners
// and tags may contradict each other.
func random(seed uint64) cluster.Snapshot {
	r := rand.New(rand.NewPCG(seed, 7))
	s := cluster.Snapshot{Now: start(), Rules: rules()}
	maybe := func(percent int) bool { return r.IntN(100) < percent }
	n := 1 + r.IntN(6)
	for i := range n {
		s.Instances = append(s.Instances, randomInstance(r, i, n))
		if maybe(80) {
			s.Claims = append(s.Claims, randomClaim(r, i, n))
		}
		if maybe(80) {
			s.Nodes = append(s.Nodes, randomNode(r, i, n))
		}
	}
	for i := range r.IntN(12) {
		p := cluster.Pod{Namespace: "default", Name: fmt.Sprintf("pod-%d", i), UID: fmt.Sprintf("uid-pod-%d", i), Phase: "Running",
			NodeName: fmt.Sprintf("n%d", r.IntN(n)), GraceSec: int64(r.IntN(60)), Critical: maybe(20), Owner: cluster.OwnerOther}
		if maybe(20) {
			p.Owner = []cluster.Owner{cluster.OwnerDaemonSet, cluster.OwnerNode, cluster.OwnerStatefulSet}[r.IntN(3)]
		}
		if maybe(20) {
			p.Deleting = start().Add(randomAge(r))
		}
		if maybe(10) {
			p.Phase = "Succeeded"
		}
		if maybe(10) {
			p.Tolerations = []cluster.Toleration{{Operator: "Exists"}}
		}
		s.Pods = append(s.Pods, p)
	}
	for range r.IntN(4) {
		s.Changes = append(s.Changes, cluster.ScheduledChange{Instance: fmt.Sprintf("i-%d", r.IntN(n)), Code: "instance-stop", At: start().Add(30 * randomAge(r))})
	}
	slices.SortFunc(s.Pods, func(a, b cluster.Pod) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func TestStepsAreSafeOnRandomSnapshots(t *testing.T) {
	for seed := range uint64(500) {
		s := random(seed)
		check(t, s, lifecycle.Next(s))
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, s)
		}
	}
}

func TestDeletedClaimsEndWithEverythingGone(t *testing.T) {
	for seed := range uint64(300) {
		s := random(seed)
		for i := range s.Claims {
			s.Claims[i].Deleting, s.Claims[i].Finalizer = start(), true
		}
		m := newModel(s)
		log := m.run(600)
		m.tick(2 * time.Minute) // by now every instance without a claim is old enough to be called leaked
		log += m.run(600)
		for _, e := range m.errs {
			t.Errorf("seed %d: %s", seed, e)
		}
		var left []string
		for _, c := range m.s.Claims {
			if c.Finalizer {
				left = append(left, "claim "+c.Name)
			}
			for _, n := range m.s.Nodes {
				if n.ProviderID == c.ProviderID {
					left = append(left, "node "+n.Name)
				}
			}
		}
		for _, i := range m.s.Instances {
			if !i.Gone() {
				left = append(left, "instance "+i.ID)
			}
		}
		if len(left) > 0 {
			t.Fatalf("seed %d: left are %v after\n%s%+v", seed, left, log, s)
		}
	}
}

// TestLiveClaimsComeToRest lets claims live with nobody interfering: the steps must end.
func TestLiveClaimsComeToRest(t *testing.T) {
	for seed := range uint64(300) {
		m := newModel(random(seed))
		log := m.run(4000)
		next := lifecycle.Next(m.s)
		for _, e := range m.errs {
			t.Errorf("seed %d: %s", seed, e)
		}
		if len(next.Actions) > 0 || next.Busy && waitsForNothing(m.s) {
			t.Fatalf("seed %d: no rest after 4000 s: %s%s", seed, log, text(next))
		}
	}
}

func waitsForNothing(s cluster.Snapshot) bool {
	return !slices.ContainsFunc(s.Claims, func(c cluster.Claim) bool { return !c.Is(v1.ConditionInitialized) || !c.Deleting.IsZero() })
}
