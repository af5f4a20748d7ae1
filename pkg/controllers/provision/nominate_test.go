package provision_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// A pod that comes while a node starts that has room for it is noted on the node's claim, once.
func TestPodsOfNodesThatStartAreRemembered(t *testing.T) {
	w := controllertest.NewWorld()
	w.RunApp("web", 1, controllertest.PodOf(900, 1500))
	if _, err := controllertest.InvokeProvision(t, w, 0); err != nil {
		t.Fatal(err)
	}
	w.RunApp("late", 1, controllertest.PodOf(100, 100))
	known := func() string {
		claims := w.Claims()
		if len(claims) != 1 {
			t.Fatalf("%d claims", len(claims))
		}
		pods := strings.Split(claims[0].Annotations["joiner.sh/nominated-pods"], ",")
		for i := range pods {
			pods[i], _, _ = strings.Cut(strings.TrimPrefix(pods[i], "default/"), "-")
		}
		slices.Sort(pods)
		return strings.Join(pods, " ")
	}
	for i, writes := range []int{1, 0} {
		p, err := controllertest.InvokeProvision(t, w, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := count(p.Calls(), "annotate claim"); got != writes || known() != "late web" {
			t.Errorf("pass %d wrote %d times, want %d; the claim knows of %q", i, got, writes, known())
		}
	}
}

// What cannot be noted is an error that stops no launch.
func TestNodesAreMadeThoughNothingCanBeNoted(t *testing.T) {
	second := func(fault fake.Fault) (*fake.World, []string, error) {
		w := controllertest.NewWorld()
		w.RunApp("web", 1, controllertest.PodOf(900, 1500))
		if _, err := controllertest.InvokeProvision(t, w, 0); err != nil {
			t.Fatal(err)
		}
		w.RunApp("late", 1, controllertest.PodOf(100, 100))
		w.RunApp("zoned", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(1800, 3000)))
		f, p := controllertest.Functions{World: w, Made: 1}, w.Ports(fault)
		err := f.Provision(p).Run(t.Context(), w.Now())
		return w, p.Calls(), err
	}
	_, calls, err := second(fake.Fault{})
	if err != nil {
		t.Fatal(err)
	}
	w, _, err := second(fake.Fault{Call: 1 + slices.Index(calls, "annotate claim")})
	if fault, ok := errors.AsType[*fake.FaultError](err); !ok || fault.Call != "annotate claim" {
		t.Errorf("error %v", err)
	}
	if n := len(w.Claims()); n != 2 {
		t.Errorf("%d claims, want 2", n)
	}
}

// What somebody else writes onto a claim just before its pods are noted does not cost the note.
func TestANominationIsNotLostToAnotherWrite(t *testing.T) {
	w := controllertest.NewWorld()
	w.RunApp("web", 1, controllertest.PodOf(900, 1500))
	if _, err := controllertest.InvokeProvision(t, w, 0); err != nil {
		t.Fatal(err)
	}
	w.RunApp("late", 1, controllertest.PodOf(100, 100))
	f, p, other := controllertest.Functions{World: w, Made: 1}, w.Ports(fake.Fault{}), w.Ports(fake.Fault{})
	meddled := false
	p.Before = func(call string) {
		if call == "annotate claim" && !meddled {
			meddled = true
			if _, err := other.AnnotateClaim(t.Context(), w.Claims()[0], map[string]string{"note": "mine"}); err != nil {
				t.Error(err)
			}
		}
	}
	if err := f.Provision(p).Run(t.Context(), w.Now()); err != nil {
		t.Fatal(err)
	}
	if known := w.Claims()[0].Annotations["joiner.sh/nominated-pods"]; !meddled || !strings.Contains(known, "late") {
		t.Errorf("meddled %t, the claim knows of %q", meddled, known)
	}
}
