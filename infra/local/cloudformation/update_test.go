package cloudformation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudformation"
)

// Every setting can be turned on and off again while nodes run. None of that takes the identity of a node.
func TestEachSettingIsChangedAndChangedBack(t *testing.T) {
	files, err := filepath.Glob("../../stack/synthesized/*.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d forms, %v", len(files), err)
	}
	for i, file := range files {
		if s := (share{2, 3}); !s.has(i) {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, uint64(i))
			w.s3Gateway = true
			w.haveRoles()
			w.deploy("plain")
			w.launch("web", linux)
			w.player.After = func(s cloudformation.Step) {
				if lost := w.beat(); len(lost) > 0 {
					t.Errorf("after %s of %s nodes are NotReady: %v", s.Verb, s.ID, lost)
					w.player.After = nil
				}
			}
			for _, to := range []string{name, "plain"} {
				err := w.player.DeployStack(t.Context(), w.stack, template(t, to, nil))
				if to == "plain" && strings.Contains(strings.Join(w.stack.Reasons, " "), linux) && (name == "nodeRole" || name == "drain-nodeRole" || name == "observe") {
					continue // what was kept has to be named from then on
				}
				if name == "rolePath" { // the path of a role with a name of its own cannot be changed
					if reasons := strings.Join(w.stack.Reasons, " "); to == name && !strings.Contains(reasons, "rename "+linux) {
						t.Errorf("to %s: %v, %s", to, err, reasons)
					}
					continue
				}
				if err != nil {
					t.Fatalf("to %s: %v", to, err)
				}
			}
			w.alive()
		})
	}
}

// A stack that takes its nodes with it refuses an update that would take their role before them.
func TestAnUpdateDoesNotTakeTheIdentityOfLivingNodes(t *testing.T) {
	for name, c := range map[string]struct{ from, to, class string }{
		"windowsNodes off": {"drain-windows", "drain", windows},
		"nodeRole set":     {"drain", "drain-nodeRole", linux},
		"kept":             {"windows", "plain", windows},
	} {
		t.Run(name, func(t *testing.T) {
			eachOrder(t, func(t *testing.T, w *world) {
				w.haveRoles()
				w.deploy(c.from)
				w.launch("web", c.class)
				err := w.player.DeployStack(t.Context(), w.stack, template(t, c.to, nil))
				if name == "kept" {
					w.want(cloudformation.UpdateComplete)
				} else {
					w.want(cloudformation.UpdateRollbackComplete)
					if err == nil || !strings.Contains(err.Error(), "1 nodes belong to the cluster: web") {
						t.Errorf("error %v", err)
					}
				}
				w.alive()
			})
		})
	}
}

// An update that fails puts back what it changed.
func TestAnUpdateThatFailsIsRolledBack(t *testing.T) {
	eachOrder(t, func(t *testing.T, w *world) {
		w.deploy("plain")
		w.launch("web", linux)
		before := w.stack.PhysicalIDs()
		w.player.Fail = func(s cloudformation.Step) error {
			if s.Verb == cloudformation.Update && strings.HasPrefix(s.ID, "Provision") && s.Type == "AWS::Lambda::Function" && w.player.Fail != nil {
				w.player.Fail = nil
				return os.ErrDeadlineExceeded
			}
			return nil
		}
		if err := w.player.DeployStack(t.Context(), w.stack, template(t, "environment", nil)); err == nil {
			t.Fatal("the update did not fail")
		}
		w.want(cloudformation.UpdateRollbackComplete)
		if after := w.stack.PhysicalIDs(); len(after) != len(before) {
			t.Errorf("%d resources, %d before", len(after), len(before))
		}
		w.alive()
		w.deploy("environment")
	})
}

// A stack whose functions tick by rules of the event bus gets schedules. At no step does neither tick, and a deployment
// that fails leaves the rules.
func TestSchedulesTakeOverFromRules(t *testing.T) {
	kinds := []string{"Provision", "Lifecycle", "Disrupt", "Refresh"}
	byRules := func(resources map[string]any) {
		for id, r := range resources {
			r := r.(map[string]any)
			if r["Type"] != "AWS::Scheduler::Schedule" {
				continue
			}
			delete(resources, id)
			p := r["Properties"].(map[string]any)
			resources[strings.Split(id, "Schedule")[0]+"Tick"] = map[string]any{"Type": "AWS::Events::Rule", "DependsOn": r["DependsOn"],
				"Properties": map[string]any{"ScheduleExpression": p["ScheduleExpression"]}}
		}
	}
	for name, fails := range map[string]bool{"deployed": false, "failed": true} {
		t.Run(name, func(t *testing.T) {
			eachOrder(t, func(t *testing.T, w *world) {
				if err := w.player.DeployStack(t.Context(), w.stack, template(t, "plain", byRules)); err != nil {
					t.Fatal(err)
				}
				ticking := map[string]int{}
				for _, f := range kinds {
					ticking[f] = 1
				}
				w.player.After = func(s cloudformation.Step) {
					for _, f := range kinds {
						if !strings.HasPrefix(s.ID, f+"Tick") && !strings.HasPrefix(s.ID, f+"Schedule") {
							continue
						}
						ticking[f] += map[cloudformation.Verb]int{cloudformation.Create: 1, cloudformation.Delete: -1}[s.Verb]
						if ticking[f] < 1 {
							t.Errorf("after %s of %s nothing invokes %s", s.Verb, s.ID, f)
						}
					}
				}
				if fails {
					w.player.Fail = func(s cloudformation.Step) error {
						if s.Verb == cloudformation.Create && strings.HasPrefix(s.ID, "RefreshSchedule") {
							return os.ErrDeadlineExceeded
						}
						return nil
					}
				}
				if err := w.player.DeployStack(t.Context(), w.stack, template(t, "plain", nil)); (err != nil) != fails {
					t.Fatal(err)
				}
				kept := map[bool]string{false: "AWS::Scheduler::Schedule", true: "AWS::Events::Rule"}[fails]
				for _, f := range kinds {
					if ticking[f] != 1 {
						t.Errorf("%d invoke %s, want one %s", ticking[f], f, kept)
					}
				}
			})
		})
	}
}

// haveRoles makes the roles that the forms name as ones that are there.
func (w *world) haveRoles() {
	w.t.Helper()
	for _, name := range []string{"nodes", "windows"} {
		if _, err := (awsemulator.Provisioner{Cloud: w.cloud}).CreateRole(name); err != nil {
			w.t.Fatal(err)
		}
	}
}
