package cloudformation_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudformation"
)

// newRelease gives every function other code, as a release does, and names the deployment.
func newRelease(code, deployment string) func(map[string]any) {
	return func(resources map[string]any) {
		for id, v := range resources {
			r, _ := v.(map[string]any)
			p, _ := r["Properties"].(map[string]any)
			switch {
			case r["Type"] == "AWS::Lambda::Function":
				p["Code"] = map[string]any{"S3Bucket": "assets", "S3Key": code + ".zip"}
			case r["Type"] == "AWS::Lambda::Version": // whose id CDK makes from what the function is
				delete(resources, id)
				resources[versionID(id, code)] = r
			case id == "PreflightResource" || id == "SetupResource":
				p["Deployment"] = deployment
				if id == "SetupResource" {
					p["Manifests"] = code
				}
			case r["Type"] == "AWS::Lambda::Alias":
				at := p["FunctionVersion"].(map[string]any)["Fn::GetAtt"].([]any)
				at[0] = versionID(at[0].(string), code)
			}
		}
	}
}

func versionID(id, code string) string {
	before, _, _ := strings.Cut(id, "CurrentVersion")
	return before + "CurrentVersion" + code
}

const (
	monday  = "2026-01-05T10:00:00Z"
	tuesday = "2026-01-06T10:00:00Z"
)

// deployRelease deploys the plain form of a release.
func (w *world) deployRelease(code, deployment string) error {
	return w.player.DeployStack(w.t.Context(), w.stack, template(w.t, "plain", newRelease(code, deployment)))
}

// Whatever step of an update fails, it is put back, and the same template can be deployed afterwards. That publishes one
// version of each function, and none of those that the update of before left.
func TestTheSameReleaseAfterAnUpdateThatFailed(t *testing.T) {
	var steps []string
	clean := newWorld(t, 3)
	if err := clean.deployRelease("a", monday); err != nil {
		t.Fatal(err)
	}
	clean.player.After = func(s cloudformation.Step) {
		if s.Verb != cloudformation.Delete {
			steps = append(steps, fmt.Sprint(s.Verb, " ", s.ID))
		}
	}
	if err := clean.deployRelease("b", tuesday); err != nil {
		t.Fatal(err)
	}
	want := clean.account.CountVersions()
	if len(steps) < 30 || len(want) != 9 {
		t.Fatalf("%d steps, versions %v", len(steps), want)
	}
	slices.Sort(steps)
	for i, step := range steps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, uint64(i))
			if err := w.deployRelease("a", monday); err != nil {
				t.Fatal(err)
			}
			failed := false
			w.player.Fail = func(s cloudformation.Step) error {
				if !failed && fmt.Sprint(s.Verb, " ", s.ID) == step {
					failed = true
					return errors.New("told to fail")
				}
				return nil
			}
			if err := w.deployRelease("b", tuesday); err == nil {
				t.Fatal("the update did not fail")
			}
			w.want(cloudformation.UpdateRollbackComplete)
			for _, deployment := range []string{"2026-01-07T10:00:00Z", "2026-01-08T10:00:00Z"} {
				if err := w.deployRelease("b", deployment); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, w.account.CountVersions()); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
		})
	}
}

// A version is published when something that the function is given changed, and then alone: other memory concerns the
// functions that read the cluster, another endpoint all, another topic for alarms nobody.
func TestVersionsFollowWhatFunctionsAreGiven(t *testing.T) {
	w := newWorld(t, 3)
	w.deploy("plain")
	before := w.account.CountVersions()
	more := func() (out []string) {
		now := w.account.CountVersions()
		for name, n := range now {
			if n != before[name] {
				out = append(out, strings.TrimPrefix(name, "joiner-demo-"))
			}
		}
		before = now
		slices.Sort(out)
		return out
	}
	memory := []string{"disrupt", "lifecycle", "provision", "refresh"}
	all := slices.Sorted(maps.Keys(before))
	for i := range all {
		all[i] = strings.TrimPrefix(all[i], "joiner-demo-")
	}
	for _, c := range []struct {
		form   string
		change func()
		want   []string
	}{
		{"plain", func() {}, nil},
		{"functionMemory", func() {}, memory},
		{"alarms", func() {}, memory},
		{"interruptionConcurrency", func() {}, nil},
		{"deployment", func() { w.cloud.SetCluster(w.api.server.URL, w.api.ca, "10.101.0.0/16") }, all},
		{"environment", func() {}, all},
	} {
		c.change()
		w.deploy(c.form)
		if got := more(); !slices.Equal(got, c.want) {
			t.Errorf("%s: new versions of %v, want %v", c.form, got, c.want)
		}
	}
}

// The world changed before an update: whoever refuses it does not refuse the way back.
func TestARefusedUpdateIsRolledBack(t *testing.T) {
	for name, change := range map[string]func(*world){
		"there is no public endpoint any more": func(w *world) { w.cloud.SetClusterAccess("API", false) },
		"the cluster is being deleted":         func(w *world) { awsemulator.SetClusterStatus(w.cloud, "DELETING") },
		"EKS knows aws-auth only":              func(w *world) { w.cloud.SetClusterAccess("CONFIG_MAP", true) },
		"the API server does not answer": func(w *world) {
			w.api.server.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { hangUp(rw) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			if err := w.deployRelease("a", monday); err != nil {
				t.Fatal(err)
			}
			before := w.account.FunctionsByRole()
			change(w)
			if err := w.deployRelease("b", tuesday); err == nil {
				t.Fatal("the update was not refused")
			}
			w.want(cloudformation.UpdateRollbackComplete)
			if diff := cmp.Diff(before, w.account.FunctionsByRole()); diff != "" {
				t.Errorf("functions (-before +after):\n%s", diff)
			}
		})
	}
}
