package controllertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/refresh"
	"joiner.sh/pkg/model/buffers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/nodeclass"
)

// ConflictError says that an object changed since it was read.
type ConflictError struct{}

// GoneError says that there is no such object.
type GoneError struct{}

// RefreshWorld is the cluster and the account of a refresh. It keeps objects as the API server does: a write needs the
// version that was read, and changes it.
type RefreshWorld struct {
	Classes map[string]*awsv1.EC2NodeClass
	Pools   map[string]*v1.NodePool
	Claims  []cluster.Claim
	version int

	Profiles []nodeclass.Profile
	Nodes    []cluster.Node

	Overlays       []*v1alpha1.NodeOverlay
	OfferingInputs cluster.Snapshot // with the overlays as they are read
	Meddled        string           // overlay that somebody else writes to at the same time
	Buffers        []buffers.Buffer

	Found     map[string]nodeclass.Resolved // by class, instead of everything
	ForgetErr error
	MarketErr error
	ListErr   error
	Meddle    func(s *RefreshWorld, name string) // runs before each write of a class's status
	Denied    string                             // claim that may not be changed

	Did    []string
	Events []cluster.Event
}

// NewRefreshWorld is empty.
func NewRefreshWorld() *RefreshWorld {
	return &RefreshWorld{Classes: map[string]*awsv1.EC2NodeClass{}, Pools: map[string]*v1.NodePool{},
		Found: map[string]nodeclass.Resolved{}}
}

// Error says so.
func (ConflictError) Error() string { return "changed meanwhile" }

// Conflict is true.
func (ConflictError) Conflict() bool { return true }

// Error says so.
func (GoneError) Error() string { return "not found" }

// NotFound is true.
func (GoneError) NotFound() bool { return true }

// Touch gives an object a new version.
func (s *RefreshWorld) Touch(meta *metav1.ObjectMeta) {
	s.version++
	meta.ResourceVersion = fmt.Sprint(s.version)
}

// AddClass stores a class that refresh has not seen.
func (s *RefreshWorld) AddClass(name string) *awsv1.EC2NodeClass {
	c := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", Generation: 1}}
	c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	s.Touch(&c.ObjectMeta)
	s.Classes[name] = c
	return c
}

// AddPool stores a NodePool with the class.
func (s *RefreshWorld) AddPool(name, class string) {
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: awsv1.Group,
		Kind: awsv1.EC2NodeClassKind, Name: class}
	s.Touch(&p.ObjectMeta)
	s.Pools[name] = p
}

// ListClasses is the port's.
func (s *RefreshWorld) ListClasses(context.Context) ([]awsv1.EC2NodeClass, error) {
	var out []awsv1.EC2NodeClass
	for _, name := range slices.Sorted(maps.Keys(s.Classes)) {
		out = append(out, *s.Classes[name].DeepCopy())
	}
	return out, s.ListErr
}

// ReadClass is the port's.
func (s *RefreshWorld) ReadClass(_ context.Context, name string) (*awsv1.EC2NodeClass, error) {
	c := s.Classes[name]
	if c == nil {
		return nil, GoneError{}
	}
	return c.DeepCopy(), nil
}

// WriteClassStatus is the port's.
func (s *RefreshWorld) WriteClassStatus(_ context.Context, c *awsv1.EC2NodeClass) error {
	if s.Meddle != nil {
		s.Meddle(s, c.Name)
	}
	have := s.Classes[c.Name]
	if have == nil || have.ResourceVersion != c.ResourceVersion {
		return ConflictError{}
	}
	have.Status = *c.Status.DeepCopy()
	s.Touch(&have.ObjectMeta)
	*c = *have.DeepCopy()
	s.Did = append(s.Did, "status of class "+c.Name)
	return nil
}

// MarkClass is the port's.
func (s *RefreshWorld) MarkClass(_ context.Context, name string, annotations map[string]string) error {
	c := s.Classes[name]
	if c == nil {
		return ConflictError{}
	}
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	maps.Copy(c.Annotations, annotations)
	c.Finalizers = []string{awsv1.FinalizerTermination}
	s.Touch(&c.ObjectMeta)
	s.Did = append(s.Did, "mark class "+name)
	return nil
}

// ReleaseClass is the port's.
func (s *RefreshWorld) ReleaseClass(_ context.Context, name string) error {
	delete(s.Classes, name)
	s.Did = append(s.Did, "release class "+name)
	return nil
}

// ListPools is the port's.
func (s *RefreshWorld) ListPools(context.Context) ([]v1.NodePool, error) {
	var out []v1.NodePool
	for _, name := range slices.Sorted(maps.Keys(s.Pools)) {
		out = append(out, *s.Pools[name].DeepCopy())
	}
	return out, nil
}

// WritePoolStatus is the port's.
func (s *RefreshWorld) WritePoolStatus(_ context.Context, p *v1.NodePool) error {
	have := s.Pools[p.Name]
	if have == nil || have.ResourceVersion != p.ResourceVersion {
		return ConflictError{}
	}
	have.Status = *p.Status.DeepCopy()
	s.Touch(&have.ObjectMeta)
	*p = *have.DeepCopy()
	s.Did = append(s.Did, "status of pool "+p.Name)
	return nil
}

// PatchPoolMeta is the port's.
func (s *RefreshWorld) PatchPoolMeta(_ context.Context, name string, annotations map[string]string) error {
	s.Pools[name].Annotations = annotations
	s.Touch(&s.Pools[name].ObjectMeta)
	s.Did = append(s.Did, "mark pool "+name)
	return nil
}

// ListClaims is the port's.
func (s *RefreshWorld) ListClaims(context.Context) ([]cluster.Claim, error) {
	return slices.Clone(s.Claims), nil
}

// AnnotateClaim is the port's.
func (s *RefreshWorld) AnnotateClaim(_ context.Context, c cluster.Claim,
	set map[string]string) (cluster.Claim, error) {
	i := slices.IndexFunc(s.Claims, func(have cluster.Claim) bool {
		return have.Name == c.Name && have.Version == c.Version
	})
	if i < 0 {
		return cluster.Claim{}, ConflictError{}
	}
	if c.Name == s.Denied {
		return cluster.Claim{}, errors.New("admission webhook denied the change of claim " + c.Name)
	}
	s.version++
	have := &s.Claims[i]
	have.Version, have.Annotations = fmt.Sprint(s.version), maps.Clone(have.Annotations)
	if have.Annotations == nil {
		have.Annotations = map[string]string{}
	}
	maps.Copy(have.Annotations, set)
	s.Did = append(s.Did, "annotate claim "+c.Name)
	return *have, nil
}

// FindAll is the port's.
func (s *RefreshWorld) FindAll(_ context.Context, c *awsv1.EC2NodeClass) nodeclass.Resolved {
	s.Did = append(s.Did, "find for "+c.Name)
	if r, ok := s.Found[c.Name]; ok {
		return r
	}
	return nodeclass.Resolved{
		Images:  []nodeclass.Image{{ID: "ami-1", Arch: "amd64"}},
		Subnets: []nodeclass.Subnet{{ID: "subnet-1", Zone: "us-west-2a"}}, SecurityGroups: []awsv1.SecurityGroup{{ID: "sg-1"}},
		Profile: "p", ServiceCIDR: "10.0.0.0/16",
	}
}

// DeleteArtifacts is the port's.
func (s *RefreshWorld) DeleteArtifacts(_ context.Context, c *awsv1.EC2NodeClass) error {
	s.Did = append(s.Did, "forget "+c.Name)
	return s.ForgetErr
}

// ListNodes is the port's.
func (s *RefreshWorld) ListNodes(context.Context) ([]cluster.Node, error) { return s.Nodes, nil }

// ListProfiles is the port's.
func (s *RefreshWorld) ListProfiles(context.Context) ([]nodeclass.Profile, error) {
	return s.Profiles, nil
}

// DeleteProfile is the port's.
func (s *RefreshWorld) DeleteProfile(_ context.Context, name string) error {
	s.Did = append(s.Did, "delete profile "+name)
	return nil
}

// Refresh is the market's, and fails with MarketErr.
func (s *RefreshWorld) Refresh(context.Context) (string, error) {
	s.Did = append(s.Did, "market")
	return "", s.MarketErr
}

// RecordEvent is the port's.
func (s *RefreshWorld) RecordEvent(_ context.Context, e cluster.Event) error {
	s.Events = append(s.Events, e)
	return nil
}

// Run refreshes once and returns what was done.
func (s *RefreshWorld) Run(t *testing.T) ([]string, error) {
	t.Helper()
	s.Did = nil
	err := s.NewRefresh().Run(t.Context())
	return s.Did, err
}

// NewRefresh is an invocation of refresh on this world.
func (s *RefreshWorld) NewRefresh() *refresh.Controller {
	return &refresh.Controller{Every: 5 * time.Minute,
		Deps: controllers.Deps{Record: s, Log: slog.New(slog.DiscardHandler),
			Now: func() time.Time { return time.Unix(1_800_000_000, 0) }},
		Finder: s, Preview: s, Classes: s, Pools: s, Nodes: s, Market: s, Overlays: s, Buffers: s, Prices: s,
		Cluster: launch.Cluster{CABundle: "ca", ServiceCIDR: "10.0.0.0/16"}}
}

// Ready says which classes and NodePools are ready.
func (s *RefreshWorld) Ready() map[string]bool {
	out := map[string]bool{}
	for name, c := range s.Classes {
		out["class "+name] = nodeclass.IsReady(c)
	}
	for name, p := range s.Pools {
		out["pool "+name] = p.StatusConditions().IsTrue("Ready")
	}
	return out
}

// ReadOfferingInputs is the port's.
func (s *RefreshWorld) ReadOfferingInputs(context.Context) (cluster.Snapshot, []v1alpha1.NodeOverlay, error) {
	var out []v1alpha1.NodeOverlay
	for _, o := range s.Overlays {
		out = append(out, *o.DeepCopy())
	}
	return s.OfferingInputs, out, nil
}

// WriteOverlayStatus is the port's.
func (s *RefreshWorld) WriteOverlayStatus(_ context.Context, o *v1alpha1.NodeOverlay) error {
	i := slices.IndexFunc(s.Overlays, func(have *v1alpha1.NodeOverlay) bool { return have.Name == o.Name })
	if i < 0 || s.Overlays[i].ResourceVersion != o.ResourceVersion || s.Meddled == o.Name {
		return ConflictError{}
	}
	s.Overlays[i].Status = *o.Status.DeepCopy()
	s.Did = append(s.Did, "status of overlay "+o.Name)
	return nil
}

// ReadCatalog is the port's.
func (s *RefreshWorld) ReadCatalog(context.Context) (instancetypes.Catalog, string, error) {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	return c, "", err
}

// ListBuffers is the port's.
func (s *RefreshWorld) ListBuffers(context.Context) ([]buffers.Buffer, error) {
	return s.Buffers, nil
}

// WriteBufferStatus is the port's.
func (s *RefreshWorld) WriteBufferStatus(_ context.Context, b *v1beta1.CapacityBuffer) error {
	s.Did = append(s.Did, "status of buffer "+b.Name)
	return nil
}
