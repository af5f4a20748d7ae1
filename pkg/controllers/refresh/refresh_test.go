package refresh_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/refresh"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/testing/controllertest"
)

func TestANewClassAndItsPoolAreReadyAfterOneRefresh(t *testing.T) {
	s := controllertest.NewRefreshWorld()
	s.AddClass("default")
	s.AddPool("general", "default")
	did, err := s.Run(t)
	want := []string{"mark class default", "find for default", "status of class default", "status of pool general", "mark pool general", "market"}
	if diff := cmp.Diff(want, did); diff != "" || err != nil {
		t.Errorf("error %v, done (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(map[string]bool{"class default": true, "pool general": true}, s.Ready()); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
	c, p := s.Classes["default"], s.Pools["general"]
	got := []string{c.Annotations["karpenter.k8s.aws/ec2nodeclass-hash"], c.Annotations["karpenter.k8s.aws/ec2nodeclass-hash-version"],
		p.Annotations["karpenter.sh/nodepool-hash"], p.Annotations["karpenter.sh/nodepool-hash-version"]}
	if diff := cmp.Diff([]string{c.Hash("ca"), "v6", p.Hash(), "v3"}, got); diff != "" {
		t.Errorf("hashes (-want +got):\n%s", diff)
	}
	did, err = s.Run(t)
	if diff := cmp.Diff([]string{"find for default", "market"}, did); diff != "" || err != nil {
		t.Errorf("when nothing changed: error %v, done (-want +got):\n%s", err, diff)
	}
}

func TestOneThatFailsStopsNoOther(t *testing.T) {
	s := controllertest.NewRefreshWorld()
	for _, name := range []string{"a", "b", "c"} {
		s.AddClass(name)
		s.AddPool("of-"+name, name)
	}
	s.Found["a"] = nodeclass.Resolved{ImagesErr: errors.New("describe images: throttled"), ServiceCIDR: "10.0.0.0/16"}
	s.MarketErr = errors.New("get products: no route")
	_, err := s.Run(t)
	if err == nil || err.Error() != "refresh EC2NodeClass a: describe images: throttled\nget products: no route" {
		t.Errorf("error is %v", err)
	}
	want := map[string]bool{"class a": false, "class b": true, "class c": true, "pool of-a": false, "pool of-b": true, "pool of-c": true}
	if diff := cmp.Diff(want, s.Ready()); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
}

// A class about which something panics stops no other either, and is counted.
func TestOneThatPanicsStopsNoOther(t *testing.T) {
	s := controllertest.NewRefreshWorld()
	for _, name := range []string{"a", "b", "c"} {
		s.AddClass(name)
		s.AddPool("of-"+name, name)
	}
	s.Meddle = func(_ *controllertest.RefreshWorld, name string) {
		if name == "a" {
			panic("planted")
		}
	}
	_, err := s.Run(t)
	if fault, is := errors.AsType[*controllers.FaultError](err); !is || fault.About != "EC2NodeClass a" {
		t.Errorf("error is %v", err)
	}
	want := map[string]bool{"class a": false, "class b": true, "class c": true, "pool of-a": false, "pool of-b": true, "pool of-c": true}
	if diff := cmp.Diff(want, s.Ready()); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
}

func TestTheCatalogDoesNotNeedTheCluster(t *testing.T) {
	s := controllertest.NewRefreshWorld()
	s.ListErr = errors.New("list ec2nodeclasses: refused")
	did, err := s.Run(t)
	if diff := cmp.Diff([]string{"market"}, did); diff != "" || err == nil {
		t.Errorf("error %v, done (-want +got):\n%s", err, diff)
	}
	r := refresh.Controller{Deps: controllers.Deps{Log: slog.New(slog.DiscardHandler)}, Market: s}
	if err := r.Run(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAClassThatSomebodyChangesIsLookedAtAgain(t *testing.T) {
	for _, test := range []struct {
		name  string
		times int
		fails bool
	}{{"once", 1, false}, {"twice", 2, false}, {"all the time", 100, true}} {
		t.Run(test.name, func(t *testing.T) {
			s := controllertest.NewRefreshWorld()
			s.AddClass("default")
			left := test.times
			s.Meddle = func(s *controllertest.RefreshWorld, name string) {
				if left--; left >= 0 {
					s.Classes[name].Generation++
					s.Touch(&s.Classes[name].ObjectMeta)
				}
			}
			did, err := s.Run(t)
			if (err != nil) != test.fails || s.Ready()["class default"] == test.fails {
				t.Errorf("error %v, ready %v", err, s.Ready())
			}
			if n := strings.Count(strings.Join(did, ","), "find"); n != min(test.times+1, 3) {
				t.Errorf("looked %d times", n)
			}
		})
	}
}

func TestAClassThatIsGoneMeanwhileIsNoError(t *testing.T) {
	s := controllertest.NewRefreshWorld()
	s.AddClass("default")
	s.Meddle = func(s *controllertest.RefreshWorld, name string) { delete(s.Classes, name) }
	if _, err := s.Run(t); err != nil {
		t.Error(err)
	}
}

func TestADeletedClassIsReleasedWhenNoClaimNeedsIt(t *testing.T) {
	s := controllertest.NewRefreshWorld()
	c := s.AddClass("default")
	now := metav1.Now()
	c.DeletionTimestamp, c.Finalizers = &now, []string{awsv1.FinalizerTermination}
	for i := range 7 {
		s.Claims = append(s.Claims, cluster.Claim{Name: fmt.Sprintf("n%d", i), Class: "default"})
	}
	s.Claims = append(s.Claims, cluster.Claim{Name: "other", Class: "other"})
	did, err := s.Run(t)
	if diff := cmp.Diff([]string{"market"}, did); diff != "" || err != nil {
		t.Errorf("while claims are left: error %v, done (-want +got):\n%s", err, diff)
	}
	want := []cluster.Event{{Kind: "EC2NodeClass", Name: "default", UID: "uid", Reason: "WaitingOnNodeClaimTermination",
		Message: "waiting for NodeClaims to end: n0, n1, n2, n3, n4 and 2 other(s)"}}
	if diff := cmp.Diff(want, s.Events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	s.Claims, s.ForgetErr = s.Claims[7:], errors.New("delete launch template: denied")
	did, err = s.Run(t)
	if diff := cmp.Diff([]string{"forget default", "market"}, did); diff != "" || err == nil || s.Classes["default"] == nil {
		t.Errorf("while clean-up fails: error %v, done (-want +got):\n%s", err, diff)
	}
	s.ForgetErr = nil
	did, err = s.Run(t)
	if diff := cmp.Diff([]string{"forget default", "release class default", "market"}, did); diff != "" || err != nil {
		t.Errorf("at last: error %v, done (-want +got):\n%s", err, diff)
	}
}
