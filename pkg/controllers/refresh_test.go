package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner/pkg/api/aws/v1"
	v1 "joiner/pkg/api/v1"
	"joiner/pkg/api/v1alpha1"
	"joiner/pkg/controllers"
	"joiner/pkg/model/buffers"
	"joiner/pkg/model/cluster"
	"joiner/pkg/nodeclaim/launch"
	"joiner/pkg/nodeclass"
)

type conflictError struct{}

func (conflictError) Error() string  { return "changed meanwhile" }
func (conflictError) Conflict() bool { return true }

type goneError struct{}

func (goneError) Error() string  { return "not found" }
func (goneError) NotFound() bool { return true }

// shop is the cluster and the account of a refresh. It keeps objects as the API server does: a write needs the version
// that was read, and changes it.
type shop struct {
	classes map[string]*awsv1.EC2NodeClass
	pools   map[string]*v1.NodePool
	claims  []cluster.Claim
	version int

	profiles []nodeclass.Profile
	nodes    []cluster.Node

	overlays []*v1alpha1.NodeOverlay
	shelves  cluster.Snapshot // with the overlays as they are read
	meddled  string           // overlay that somebody else writes to at the same time
	buffers  []buffers.Buffer

	found     map[string]nodeclass.Resolved // by class, instead of everything
	forgetErr error
	marketErr error
	listErr   error
	meddle    func(s *shop, name string) // runs before each write of a class's status

	did    []string
	events []cluster.Event
}

func newShop() *shop {
	return &shop{classes: map[string]*awsv1.EC2NodeClass{}, pools: map[string]*v1.NodePool{}, found: map[string]nodeclass.Resolved{}}
}

func (s *shop) touch(meta *metav1.ObjectMeta) {
	s.version++
	meta.ResourceVersion = fmt.Sprint(s.version)
}

func (s *shop) addClass(name string) *awsv1.EC2NodeClass {
	c := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", Generation: 1}}
	c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	s.touch(&c.ObjectMeta)
	s.classes[name] = c
	return c
}

func (s *shop) addPool(name, class string) {
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.EC2NodeClassKind, Name: class}
	s.touch(&p.ObjectMeta)
	s.pools[name] = p
}

func (s *shop) ListClasses(context.Context) ([]awsv1.EC2NodeClass, error) {
	var out []awsv1.EC2NodeClass
	for _, name := range slices.Sorted(maps.Keys(s.classes)) {
		out = append(out, *s.classes[name].DeepCopy())
	}
	return out, s.listErr
}

func (s *shop) ReadClass(_ context.Context, name string) (*awsv1.EC2NodeClass, error) {
	c := s.classes[name]
	if c == nil {
		return nil, goneError{}
	}
	return c.DeepCopy(), nil
}

func (s *shop) WriteClassStatus(_ context.Context, c *awsv1.EC2NodeClass) error {
	if s.meddle != nil {
		s.meddle(s, c.Name)
	}
	have := s.classes[c.Name]
	if have == nil || have.ResourceVersion != c.ResourceVersion {
		return conflictError{}
	}
	have.Status = *c.Status.DeepCopy()
	s.touch(&have.ObjectMeta)
	*c = *have.DeepCopy()
	s.did = append(s.did, "status of class "+c.Name)
	return nil
}

func (s *shop) MarkClass(_ context.Context, name string, annotations map[string]string) error {
	c := s.classes[name]
	if c == nil {
		return conflictError{}
	}
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	maps.Copy(c.Annotations, annotations)
	c.Finalizers = []string{awsv1.FinalizerTermination}
	s.touch(&c.ObjectMeta)
	s.did = append(s.did, "mark class "+name)
	return nil
}

func (s *shop) ReleaseClass(_ context.Context, name string) error {
	delete(s.classes, name)
	s.did = append(s.did, "release class "+name)
	return nil
}

func (s *shop) ListPools(context.Context) ([]v1.NodePool, error) {
	var out []v1.NodePool
	for _, name := range slices.Sorted(maps.Keys(s.pools)) {
		out = append(out, *s.pools[name].DeepCopy())
	}
	return out, nil
}

func (s *shop) WritePoolStatus(_ context.Context, p *v1.NodePool) error {
	have := s.pools[p.Name]
	if have == nil || have.ResourceVersion != p.ResourceVersion {
		return conflictError{}
	}
	have.Status = *p.Status.DeepCopy()
	s.touch(&have.ObjectMeta)
	*p = *have.DeepCopy()
	s.did = append(s.did, "status of pool "+p.Name)
	return nil
}

func (s *shop) PatchPoolMeta(_ context.Context, name string, annotations map[string]string) error {
	s.pools[name].Annotations = annotations
	s.touch(&s.pools[name].ObjectMeta)
	s.did = append(s.did, "mark pool "+name)
	return nil
}

func (s *shop) ListClaims(context.Context) ([]cluster.Claim, error) {
	return slices.Clone(s.claims), nil
}

func (s *shop) AnnotateClaim(_ context.Context, c cluster.Claim, set map[string]string) (cluster.Claim, error) {
	i := slices.IndexFunc(s.claims, func(have cluster.Claim) bool { return have.Name == c.Name && have.Version == c.Version })
	if i < 0 {
		return cluster.Claim{}, conflictError{}
	}
	s.version++
	have := &s.claims[i]
	have.Version, have.Annotations = fmt.Sprint(s.version), maps.Clone(have.Annotations)
	if have.Annotations == nil {
		have.Annotations = map[string]string{}
	}
	maps.Copy(have.Annotations, set)
	s.did = append(s.did, "annotate claim "+c.Name)
	return *have, nil
}

func (s *shop) FindAll(_ context.Context, c *awsv1.EC2NodeClass) nodeclass.Resolved {
	s.did = append(s.did, "find for "+c.Name)
	if f, ok := s.found[c.Name]; ok {
		return f
	}
	return nodeclass.Resolved{
		Images:  []nodeclass.Image{{ID: "ami-1", Arch: "amd64"}},
		Subnets: []nodeclass.Subnet{{ID: "subnet-1", Zone: "us-west-2a"}}, SecurityGroups: []awsv1.SecurityGroup{{ID: "sg-1"}}, Profile: "p", ServiceCIDR: "10.0.0.0/16",
	}
}

func (s *shop) DeleteArtifacts(_ context.Context, c *awsv1.EC2NodeClass) error {
	s.did = append(s.did, "forget "+c.Name)
	return s.forgetErr
}

func (s *shop) ListNodes(context.Context) ([]cluster.Node, error) { return s.nodes, nil }

func (s *shop) ListProfiles(context.Context) ([]nodeclass.Profile, error) { return s.profiles, nil }

func (s *shop) DeleteProfile(_ context.Context, name string) error {
	s.did = append(s.did, "delete profile "+name)
	return nil
}

func (s *shop) Refresh(context.Context) (string, error) {
	s.did = append(s.did, "market")
	return "", s.marketErr
}

func (s *shop) RecordEvent(_ context.Context, e cluster.Event) error {
	s.events = append(s.events, e)
	return nil
}

// run refreshes once and returns what was done.
func (s *shop) run(t *testing.T) ([]string, error) {
	t.Helper()
	s.did = nil
	err := s.refresh().Run(t.Context())
	return s.did, err
}

func (s *shop) refresh() *controllers.Refresh {
	return &controllers.Refresh{Deps: controllers.Deps{Record: s, Now: func() time.Time { return time.Unix(1_800_000_000, 0) }, Log: slog.New(slog.DiscardHandler)},
		Finder: s, Preview: s, Classes: s, Pools: s, Nodes: s, Market: s, Overlays: s, Buffers: s, Prices: s,
		Cluster: launch.Cluster{CABundle: "ca", ServiceCIDR: "10.0.0.0/16"}}
}

func (s *shop) ready() map[string]bool {
	out := map[string]bool{}
	for name, c := range s.classes {
		out["class "+name] = nodeclass.IsReady(c)
	}
	for name, p := range s.pools {
		out["pool "+name] = p.StatusConditions().IsTrue("Ready")
	}
	return out
}

func TestANewClassAndItsPoolAreReadyAfterOneRefresh(t *testing.T) {
	s := newShop()
	s.addClass("default")
	s.addPool("general", "default")
	did, err := s.run(t)
	want := []string{"mark class default", "find for default", "status of class default", "status of pool general", "mark pool general", "market"}
	if diff := cmp.Diff(want, did); diff != "" || err != nil {
		t.Errorf("error %v, done (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(map[string]bool{"class default": true, "pool general": true}, s.ready()); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
	c, p := s.classes["default"], s.pools["general"]
	got := []string{c.Annotations["karpenter.k8s.aws/ec2nodeclass-hash"], c.Annotations["karpenter.k8s.aws/ec2nodeclass-hash-version"],
		p.Annotations["karpenter.sh/nodepool-hash"], p.Annotations["karpenter.sh/nodepool-hash-version"]}
	if diff := cmp.Diff([]string{c.Hash("ca"), "v5", p.Hash(), "v3"}, got); diff != "" {
		t.Errorf("hashes (-want +got):\n%s", diff)
	}
	did, err = s.run(t)
	if diff := cmp.Diff([]string{"find for default", "market"}, did); diff != "" || err != nil {
		t.Errorf("when nothing changed: error %v, done (-want +got):\n%s", err, diff)
	}
}

func TestOneThatFailsStopsNoOther(t *testing.T) {
	s := newShop()
	for _, name := range []string{"a", "b", "c"} {
		s.addClass(name)
		s.addPool("of-"+name, name)
	}
	s.found["a"] = nodeclass.Resolved{ImagesErr: errors.New("describe images: throttled"), ServiceCIDR: "10.0.0.0/16"}
	s.marketErr = errors.New("get products: no route")
	_, err := s.run(t)
	if err == nil || err.Error() != "refresh EC2NodeClass a: describe images: throttled\nget products: no route" {
		t.Errorf("error is %v", err)
	}
	want := map[string]bool{"class a": false, "class b": true, "class c": true, "pool of-a": false, "pool of-b": true, "pool of-c": true}
	if diff := cmp.Diff(want, s.ready()); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
}

// A class about which something panics stops no other either, and is counted.
func TestOneThatPanicsStopsNoOther(t *testing.T) {
	s := newShop()
	for _, name := range []string{"a", "b", "c"} {
		s.addClass(name)
		s.addPool("of-"+name, name)
	}
	s.meddle = func(_ *shop, name string) {
		if name == "a" {
			panic("planted")
		}
	}
	_, err := s.run(t)
	if fault, is := errors.AsType[*controllers.FaultError](err); !is || fault.About != "EC2NodeClass a" {
		t.Errorf("error is %v", err)
	}
	want := map[string]bool{"class a": false, "class b": true, "class c": true, "pool of-a": false, "pool of-b": true, "pool of-c": true}
	if diff := cmp.Diff(want, s.ready()); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
}

func TestTheCatalogDoesNotNeedTheCluster(t *testing.T) {
	s := newShop()
	s.listErr = errors.New("list ec2nodeclasses: refused")
	did, err := s.run(t)
	if diff := cmp.Diff([]string{"market"}, did); diff != "" || err == nil {
		t.Errorf("error %v, done (-want +got):\n%s", err, diff)
	}
	r := controllers.Refresh{Deps: controllers.Deps{Log: slog.New(slog.DiscardHandler)}, Market: s}
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
			s := newShop()
			s.addClass("default")
			left := test.times
			s.meddle = func(s *shop, name string) {
				if left--; left >= 0 {
					s.classes[name].Generation++
					s.touch(&s.classes[name].ObjectMeta)
				}
			}
			did, err := s.run(t)
			if (err != nil) != test.fails || s.ready()["class default"] == test.fails {
				t.Errorf("error %v, ready %v", err, s.ready())
			}
			if n := strings.Count(strings.Join(did, ","), "find"); n != min(test.times+1, 3) {
				t.Errorf("looked %d times", n)
			}
		})
	}
}

func TestAClassThatIsGoneMeanwhileIsNoError(t *testing.T) {
	s := newShop()
	s.addClass("default")
	s.meddle = func(s *shop, name string) { delete(s.classes, name) }
	if _, err := s.run(t); err != nil {
		t.Error(err)
	}
}

func TestADeletedClassIsReleasedWhenNoClaimNeedsIt(t *testing.T) {
	s := newShop()
	c := s.addClass("default")
	now := metav1.Now()
	c.DeletionTimestamp, c.Finalizers = &now, []string{awsv1.FinalizerTermination}
	for i := range 7 {
		s.claims = append(s.claims, cluster.Claim{Name: fmt.Sprintf("n%d", i), Class: "default"})
	}
	s.claims = append(s.claims, cluster.Claim{Name: "other", Class: "other"})
	did, err := s.run(t)
	if diff := cmp.Diff([]string{"market"}, did); diff != "" || err != nil {
		t.Errorf("while claims are left: error %v, done (-want +got):\n%s", err, diff)
	}
	want := []cluster.Event{{Kind: "EC2NodeClass", Name: "default", UID: "uid", Reason: "WaitingOnNodeClaimTermination",
		Message: "waiting for NodeClaims to end: n0, n1, n2, n3, n4 and 2 other(s)"}}
	if diff := cmp.Diff(want, s.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	s.claims, s.forgetErr = s.claims[7:], errors.New("delete launch template: denied")
	did, err = s.run(t)
	if diff := cmp.Diff([]string{"forget default", "market"}, did); diff != "" || err == nil || s.classes["default"] == nil {
		t.Errorf("while clean-up fails: error %v, done (-want +got):\n%s", err, diff)
	}
	s.forgetErr = nil
	did, err = s.run(t)
	if diff := cmp.Diff([]string{"forget default", "release class default", "market"}, did); diff != "" || err != nil {
		t.Errorf("at last: error %v, done (-want +got):\n%s", err, diff)
	}
}
