package cloudformation_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudformation"
	"joiner.sh/infra/local/lambdahost/assembly"
)

// release is one that is deployed in some form.
type release struct {
	code, deployment string
	before           bool // it is commitBefore
}

const (
	wednesday = "2026-01-07T10:00:00Z"
	thursday  = "2026-01-08T10:00:00Z"
)

func releaseBefore(deployment string) release { return release{commitBefore, deployment, true} }

func releaseToday(deployment string) release { return release{"today", deployment, false} }

func (r release) template(t *testing.T, name string) *assembly.Template {
	t.Helper()
	if !r.before {
		return template(t, name, newRelease(r.code, r.deployment))
	}
	all := formBefore(t, name)
	newRelease(r.code, r.deployment)(all)
	delete(all["SetupResource"].(map[string]any)["Properties"].(map[string]any), "Deployment") // it was not told
	return parseForm(t, all)
}

func (w *world) deployForm(name string, r release) error {
	return w.player.DeployStack(w.t.Context(), w.stack, r.template(w.t, name))
}

// share is which forms a play is about at short length: one of so many. Plays share the forms out, so that two forms of
// three are updated and go back, and the others are turned on and off.
type share struct{ at, of int }

func (s share) has(form int) bool { return !testing.Short() || form%s.of == s.at }

// eachForm runs a play in a world of its own for every form of the share, as which commitBefore was deployed. It has a
// node, and a command of disruption is under way.
func eachForm(t *testing.T, s share, play func(*testing.T, *world, string)) {
	t.Helper()
	for i, name := range formNames(t) {
		if !s.has(i) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, newStackBefore(t, name, uint64(i)), name)
		})
	}
}

func newStackBefore(t *testing.T, name string, seed uint64) *world {
	t.Helper()
	w := newWorld(t, seed)
	w.s3Gateway = true
	w.haveRoles()
	if name == "nodeRole" {
		if _, err := (awsemulator.Provisioner{Cloud: w.cloud}).CreateRole(linux); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.deployForm(name, releaseBefore(monday)); err != nil {
		t.Fatal(err)
	}
	if w.runsNodes(name) {
		w.launchInstance("web", linux)
		w.boots(name, releaseBefore(monday))
	}
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	w.api.put(claims+"replacement", map[string]any{"kind": "NodeClaim", "apiVersion": "karpenter.sh/v1",
		"metadata": map[string]any{"name": "replacement", "finalizers": []any{"karpenter.sh/termination"},
			"annotations": map[string]any{"joiner.sh/replaces": "web", "joiner.sh/disruption-command": "c-1"}}})
	return w
}

// runsNodes reports whether the stack of a form has made the role that nodes are launched with here, and takes away what
// was made of it: beside endpoints alone nobody makes a profile of a role, nor removes one.
func (w *world) runsNodes(name string) bool {
	return slices.Contains(w.account.LeftResources(), "access entry "+linux) && name != "rolePath" && name != "endpoints-drain"
}

// commands are the claims and nodes of the cluster.
func (w *world) commands() string {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	found := map[string]any{}
	for at, o := range w.api.objects {
		if strings.HasPrefix(at, claims) || strings.HasPrefix(at, nodes) || strings.HasPrefix(at, classes) {
			o = maps.Clone(o)
			m := maps.Clone(meta(o))
			delete(m, "resourceVersion")
			o["metadata"] = m
			delete(o, "status")
			found[at] = o
		}
	}
	text, err := json.Marshal(found)
	if err != nil {
		w.t.Error(err)
	}
	return string(text)
}

// mayBeReplaced are the types of which an update may make another one in place of the one before: nobody keeps their
// names, and the new one is there before the old one goes.
var mayBeReplaced = []string{"AWS::Lambda::Permission", "AWS::Lambda::Version"}

// watch fails the test for a step after which a node is lost or what is invoked is not there.
func (w *world) watch() {
	w.created = map[string]bool{}
	w.player.After = func(s cloudformation.Step) {
		if s.Verb == cloudformation.Create {
			w.created[s.ID] = true
		}
		for node, why := range w.beat() {
			w.t.Errorf("after %s of %s node %s is NotReady: %s", s.Verb, s.ID, node, why)
			w.player.After = nil
		}
		if problem := w.danglingAlias(); problem != "" {
			w.t.Errorf("after %s of %s %s", s.Verb, s.ID, problem)
			w.player.After = nil
		}
	}
}

// danglingAlias says which alias names a version that is gone.
func (w *world) danglingAlias() string {
	for id, r := range w.stack.Resources() {
		if r.Type != "AWS::Lambda::Alias" {
			continue
		}
		function, _ := r.Properties["FunctionName"].(string)
		n, err := strconv.Atoi(fmt.Sprint(r.Properties["FunctionVersion"]))
		if err != nil || !w.account.HasVersion(function, n) {
			return fmt.Sprintf("%s names version %v of %s, which is gone", id, r.Properties["FunctionVersion"], function)
		}
	}
	return ""
}

// unreplaced fails the test for a resource that is in both and was made again, or is gone.
func (w *world) unreplaced(before map[string]cloudformation.Resource) {
	w.t.Helper()
	for id, now := range w.stack.Resources() {
		was, there := before[id]
		if there && (w.created[id] || was.Physical != now.Physical) && !slices.Contains(mayBeReplaced, now.Type) {
			w.t.Errorf("%s (%s) was replaced: %s, was %s", id, now.Type, now.Physical, was.Physical)
		}
	}
	for id, was := range before {
		_, stays := w.stack.Resources()[id]
		// the release of before lets functions in a VPC fall asleep
		awake := was.Type == "AWS::Scheduler::Schedule" && was.Properties["ScheduleExpression"] == "rate(1 day)"
		if !stays && !awake && !slices.Contains(mayBeReplaced, was.Type) && was.Type != "AWS::CloudWatch::Alarm" {
			w.t.Errorf("%s (%s) was taken away", id, was.Type)
		}
	}
}

// A stack of the commit before is updated to what is synthesized today, and goes back. Nothing is replaced that others
// know by its name, versions of before stay to go back to, and nodes and commands under way go on.
func TestAStackThatExistsIsUpdatedAndGoesBack(t *testing.T) {
	eachForm(t, share{0, 3}, func(t *testing.T, w *world, name string) {
		commands, versions := w.commands(), w.account.CountVersions()
		for i, to := range []release{releaseToday(tuesday), releaseBefore(wednesday), releaseToday(thursday)} {
			w.watch()
			before := w.stack.Resources()
			if err := w.deployForm(name, to); err != nil {
				t.Fatalf("to %s: %v", to.code, err)
			}
			w.unreplaced(before)
			w.boots(name, to)
			for function, n := range w.account.CountVersions() {
				if want := versions[function] + i + 1; n != want {
					t.Errorf("to %s: %s has %d versions, want %d", to.code, function, n, want)
				}
			}
		}
		if diff := cmp.Diff(commands, w.commands()); diff != "" {
			t.Errorf("claims and nodes (-before +after):\n%s", diff)
		}
	})
}

// A stack that went back to the release of before is deleted by it, with a node that joined in between. That is drained in
// peace, or stays as it is.
func TestAStackThatWentBackIsDeleted(t *testing.T) {
	eachForm(t, share{1, 3}, func(t *testing.T, w *world, name string) {
		if err := w.deployForm(name, releaseToday(tuesday)); err != nil {
			t.Fatal(err)
		}
		joins := w.runsNodes(name)
		if joins {
			w.launch("new", linux)
		}
		if err := w.deployForm(name, releaseBefore(wednesday)); err != nil {
			t.Fatal(err)
		}
		w.alive()
		if err := w.player.DeleteStack(t.Context(), w.stack); err != nil {
			t.Fatal(err)
		}
		w.want(cloudformation.DeleteComplete)
		// The claim of the command names no class, so that it is nobody's.
		if held := slices.DeleteFunc(w.held(), func(at string) bool { return at == claims+"replacement" }); len(held) > 0 {
			t.Errorf("somebody waits for functions that are gone: %v", held)
		}
		if w.alive(); joins && strings.HasPrefix(name, "drain") {
			w.peace()
		}
	})
}

// An update is refused because the world changed. The stack of before goes on, and what was refused is deployed when the
// world is mended.
func TestAnUpdateIsRefusedAndThenMended(t *testing.T) {
	for what, c := range map[string]struct {
		share
		spoil, mend func(*world)
	}{
		"the cluster is being deleted": {share{2, 4},
			func(w *world) { awsemulator.SetClusterStatus(w.cloud, "DELETING") },
			func(w *world) { awsemulator.SetClusterStatus(w.cloud, "ACTIVE") }},
		"the API server does not answer": {share{3, 20}, // it waits for three seconds
			func(w *world) {
				w.api.server.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { hangUp(rw) })
			},
			func(w *world) { w.api.server.Config.Handler = http.HandlerFunc(w.api.serve) }},
	} {
		t.Run(what, func(t *testing.T) {
			eachForm(t, c.share, func(t *testing.T, w *world, name string) {
				before := w.stack.PhysicalIDs()
				c.spoil(w)
				if err := w.deployForm(name, releaseToday(tuesday)); err == nil {
					t.Fatal("the update was not refused")
				}
				w.want(cloudformation.UpdateRollbackComplete)
				if diff := cmp.Diff(before, w.stack.PhysicalIDs()); diff != "" {
					t.Errorf("resources (-before +after the rollback):\n%s", diff)
				}
				c.mend(w)
				if err := w.deployForm(name, releaseToday(wednesday)); err != nil {
					t.Fatal(err)
				}
				w.alive()
			})
		})
	}
}

// byHand changes a resource as somebody does who does not use CloudFormation.
func (w *world) byHand(r cloudformation.Resource, property string, value any) {
	w.t.Helper()
	now := r
	now.Properties = maps.Clone(r.Properties)
	now.Properties[property] = value
	if err := w.account.Update(w.t.Context(), w.stack, r, &now); err != nil {
		w.t.Fatal(err)
	}
}

// A release that is deployed again touches nothing that was changed by hand. Another one has aliases lead to its own
// versions again, and leaves the rest.
func TestWhatWasChangedByHandStays(t *testing.T) {
	eachForm(t, share{1, 4}, func(t *testing.T, w *world, name string) {
		if err := w.deployForm(name, releaseToday(tuesday)); err != nil {
			t.Fatal(err)
		}
		gone := map[string]string{} // id by type
		for _, id := range slices.Sorted(maps.Keys(w.stack.Resources())) {
			switch r := w.stack.Resources()[id]; r.Type {
			case "AWS::Scheduler::Schedule":
				w.byHand(r, "State", "DISABLED")
			case "AWS::Lambda::Alias":
				w.byHand(r, "FunctionVersion", "1")
			case "AWS::Lambda::Permission", "AWS::Events::Rule":
				if gone[r.Type] == "" {
					gone[r.Type] = id
					if err := w.account.Delete(t.Context(), w.stack, r); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		for _, to := range []release{releaseToday(wednesday), {"tomorrow", thursday, false}} {
			if err := w.deployForm(name, to); err != nil {
				t.Fatal(err)
			}
			version := map[string]string{"today": "1", "tomorrow": "3"}[to.code]
			for id, r := range w.stack.Resources() {
				has := w.account.KeptProperties(r.Type, r.Physical)
				switch {
				case r.Type == "AWS::Scheduler::Schedule" && has["State"] != "DISABLED":
					t.Errorf("to %s: %s is %v", to.code, id, has["State"])
				case r.Type == "AWS::Lambda::Alias" && has["FunctionVersion"] != version:
					t.Errorf("to %s: %s leads to %v, want %s", to.code, id, has["FunctionVersion"], version)
				case gone[r.Type] == id && has != nil && r.Type == "AWS::Events::Rule":
					t.Errorf("to %s: %s is there again", to.code, id)
				}
			}
		}
		w.alive()
	})
}

// What an update changes and somebody took away leaves the stack in UPDATE_ROLLBACK_FAILED. Nodes go on. The way out is
// the one that infra/repair.md names: go on without it, make it again, and deploy.
func TestWhatWasTakenAwayByHandIsMadeAgainByHand(t *testing.T) {
	for _, prefix := range []string{"Provision0F7F188D", "ProvisionAlias", "ProvisionRole", "CatalogPolicy", "StateChangeEventsPolicy"} {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			w := newStackBefore(t, "plain", 3)
			var taken cloudformation.Resource
			for id, r := range w.stack.Resources() {
				if strings.HasPrefix(id, prefix) && !strings.Contains(id, "Invoke") {
					taken = r
				}
			}
			if err := w.account.Delete(t.Context(), w.stack, taken); err != nil {
				t.Fatal(err)
			}
			if err := w.deployForm("plain", releaseToday(tuesday)); err == nil || !strings.Contains(err.Error(), taken.ID+": ") {
				t.Fatalf("error %v, want %s named", err, taken.ID)
			}
			w.want(cloudformation.UpdateRollbackFailed)
			if err := w.deployForm("plain", releaseToday(tuesday)); err == nil || !strings.Contains(err.Error(), "UPDATE_ROLLBACK_FAILED") {
				t.Errorf("error %v", err)
			}
			if err := w.player.ContinueRollback(t.Context(), w.stack); err == nil {
				t.Error("the rollback succeeded without the resource")
			}
			if err := w.player.ContinueRollback(t.Context(), w.stack, taken.ID); err != nil {
				t.Fatal(err)
			}
			w.want(cloudformation.UpdateRollbackComplete)
			if err := w.account.Create(t.Context(), w.stack, &taken); err != nil {
				t.Fatal(err)
			}
			if err := w.deployForm("plain", releaseToday(wednesday)); err != nil {
				t.Fatal(err)
			}
			w.alive()
		})
	}
}
