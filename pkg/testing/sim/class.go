package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	v1beta1 "joiner/pkg/api/autoscaling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "joiner/pkg/api/aws/v1"
	v1 "joiner/pkg/api/v1"
	"joiner/pkg/api/v1alpha1"
	"joiner/pkg/model/buffers"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/nodeclass"
)

const caBundle = "Q0E=" // of the cluster, a part of the drift hashes of classes

// awsAccount is what AWS knows for the classes.
type awsAccount struct {
	image    int       // number of the newest
	changed  time.Time // since when it is
	before   int       // the one before, which look-ups may show for a while
	profiles map[string]nodeclass.Profile
	edited   bool      // nodes may have drifted
	looked   time.Time // when refresh looked last
}

// drawClasses makes the class of the pools, which refresh has looked at already in most runs.
func (w *world) drawClasses() {
	w.account = awsAccount{image: 1, before: 1, profiles: map[string]nodeclass.Profile{}}
	w.addClass("default")
	if c := w.objects["default"]; w.drawChance(0.7) {
		c.Finalizers = []string{awsv1.FinalizerTermination}
		c.Annotations = map[string]string{awsv1.AnnotationHash: c.Hash(caBundle),
			awsv1.AnnotationHashVersion: awsv1.HashVersion}
		nodeclass.UpdateStatus(c, w.resolveClass(c), time.Now())
	}
	for _, p := range w.pools {
		np := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: p.Name, ResourceVersion: "1", Generation: 1}}
		np.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.EC2NodeClassKind,
			Name: p.Class}
		w.nodePools[p.Name] = np
	}
}

// addClass makes an EC2NodeClass that nobody has looked at.
func (w *world) addClass(name string) {
	w.made++
	c := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, ResourceVersion: "1"}}
	c.UID = types.UID(fmt.Sprintf("uid-class-%d", w.made))
	c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	c.Spec.Role = "demo"
	w.objects[name] = c
	w.version++
}

// resolveClass is what AWS shows for a class. It makes its instance profile, as the real adapter does.
func (w *world) resolveClass(c *awsv1.EC2NodeClass) nodeclass.Resolved {
	name := "profile-" + c.Name
	if _, made := w.account.profiles[name]; !made {
		w.account.profiles[name] = nodeclass.Profile{Name: name, ClassUID: string(c.UID), Created: time.Now()}
		w.countMutation("make instance profile")
	}
	image := w.account.image
	if time.Since(w.account.changed) < w.plan.listLag {
		image = w.account.before
	}
	out := nodeclass.Resolved{Profile: name, Region: "us-west-2", ServiceCIDR: "172.20.0.0/16",
		SecurityGroups: []awsv1.SecurityGroup{{ID: "sg-1"}},
		Images: []nodeclass.Image{{ID: fmt.Sprintf("ami-%d", image), Name: fmt.Sprintf("al2023-%d", image),
			Arch: "amd64", Created: w.began.Truncate(time.Hour)}}}
	for _, zone := range slices.Sorted(maps.Keys(w.market.Zones)) {
		out.Subnets = append(out.Subnets, nodeclass.Subnet{ID: "subnet-" + zone, Zone: zone,
			ZoneID: w.market.Zones[zone], Free: 1000})
	}
	return out
}

// describedClasses are the classes as decisions see them.
func (w *world) describedClasses() (out []instancetypes.Class) {
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		c := nodeclass.DescribeClass(w.objects[name])
		c.Family, c.MemoryOverhead = instancetypes.AL2023, memoryOverhead
		out = append(out, c)
	}
	return out
}

// changeClasses is an edit of a class, a new image, or a class that comes or goes.
func (w *world) changeClasses() {
	extra, there := w.objects["extra"]
	w.account.edited = true
	switch what := w.rng.IntN(4); {
	case what == 0:
		w.editClass(w.objects["default"])
	case what == 1:
		w.newImage()
	case !there:
		w.addTrace("class extra is made")
		w.addClass("extra")
	case extra.DeletionTimestamp == nil && what == 2:
		w.editClass(extra)
	case extra.DeletionTimestamp == nil:
		w.addTrace("somebody deletes class extra")
		now := metav1.NewTime(w.toSecond())
		extra.DeletionTimestamp = &now
		w.writeClass(extra)
		w.collectClass(extra)
	}
}

// editClass changes a tag, after which the class's nodes have drifted.
func (w *world) editClass(c *awsv1.EC2NodeClass) {
	if c.DeletionTimestamp != nil {
		return
	}
	c.Generation++
	c.Spec.Tags = map[string]string{"edit": strconv.FormatInt(c.Generation, 10)}
	w.addTrace("class %s is edited", c.Name)
	w.writeClass(c)
}

func (w *world) writeClass(c *awsv1.EC2NodeClass) {
	w.version++
	c.ResourceVersion = strconv.Itoa(w.version)
}

func (w *world) collectClass(c *awsv1.EC2NodeClass) {
	if c.DeletionTimestamp != nil && len(c.Finalizers) == 0 {
		delete(w.objects, c.Name)
		w.addTrace("class %s is gone", c.Name)
	}
}

// classProblems lists what must not be about classes at rest.
func (w *world) classProblems() (bad []string) {
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		c := w.objects[name]
		switch d := nodeclass.DescribeClass(c); {
		case c.DeletionTimestamp != nil:
			bad = append(bad, "class "+name+" is still being deleted")
		case !d.Ready || d.Unseen:
			k, _ := c.StatusConditions().Get(awsv1.ConditionValidationSucceeded)
			bad = append(bad, fmt.Sprintf("class %s is not ready: %s %s", name, d.Message, k.Message))
		case c.Status.AMIs[0].ID != fmt.Sprintf("ami-%d", w.account.image):
			bad = append(bad, fmt.Sprintf("class %s has image %s, the newest is ami-%d", name, c.Status.AMIs[0].ID,
				w.account.image))
		case c.Annotations[awsv1.AnnotationHash] != c.Hash(caBundle):
			bad = append(bad, "class "+name+" has an old hash")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		c := w.claims[name]
		if w.driftReason(c) != "" && !c.Is(v1.ConditionDrifted) {
			bad = append(bad, "claim "+name+" has drifted, and does not say so")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		if w.nodes[name].ReadySince.Add(late).After(w.account.looked) {
			bad = append(bad, "refresh has not learned from node "+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.account.profiles)) {
		if w.objects[name[len("profile-"):]] == nil {
			bad = append(bad, name+" belongs to no class")
		}
	}
	return bad
}

// FindAll looks up what a class stands for.
func (p *Ports) FindAll(ctx context.Context, c *awsv1.EC2NodeClass) nodeclass.Resolved {
	found, err := callPort(ctx, p, "look up class", c.Name, func() (nodeclass.Resolved, error) {
		if have := p.w.objects[c.Name]; have != nil && len(have.Finalizers) == 0 {
			p.w.addViolation("made before the finalizer",
				"an instance profile is made for class %s, which nothing keeps from vanishing", c.Name)
		}
		if p.w.objects[c.Name] == nil {
			return nodeclass.Resolved{}, &NotFoundError{"class " + c.Name}
		}
		p.w.account.looked = time.Now()
		return p.w.resolveClass(c), nil
	})
	if err != nil {
		return nodeclass.Resolved{ImagesErr: err, SubnetsErr: err, GroupsErr: err, ReservationsErr: err,
			PlacementErr: err, ProfileErr: err,
			Region: "us-west-2", ServiceCIDR: "172.20.0.0/16"}
	}
	return found
}

// DeleteArtifacts deletes what was made for the class.
func (p *Ports) DeleteArtifacts(ctx context.Context, c *awsv1.EC2NodeClass) error {
	return tryPort(ctx, p, "forget class", c.Name, func() error {
		for _, name := range slices.Sorted(maps.Keys(p.w.claims)) {
			if p.w.claims[name].Class == c.Name {
				p.w.addViolation("class forgotten too early",
					"the instance profile of class %s goes while claim %s needs it", c.Name, name)
			}
		}
		delete(p.w.account.profiles, "profile-"+c.Name)
		p.w.countMutation("forget class")
		return nil
	})
}

// ListProfiles lists the instance profiles.
func (p *Ports) ListProfiles(ctx context.Context) ([]nodeclass.Profile, error) {
	return callPort(ctx, p, "list profiles", "", func() (out []nodeclass.Profile, err error) {
		for _, name := range slices.Sorted(maps.Keys(p.w.account.profiles)) {
			out = append(out, p.w.account.profiles[name])
		}
		return out, nil
	})
}

// DeleteProfile deletes one.
func (p *Ports) DeleteProfile(ctx context.Context, name string) error {
	return tryPort(ctx, p, "delete profile", name, func() error {
		delete(p.w.account.profiles, name)
		p.w.countMutation("delete profile")
		return nil
	})
}

// ListClasses lists the classes.
func (p *Ports) ListClasses(ctx context.Context) ([]awsv1.EC2NodeClass, error) {
	return callPort(ctx, p, "list classes", "", func() (out []awsv1.EC2NodeClass, err error) {
		for _, name := range slices.Sorted(maps.Keys(p.w.objects)) {
			out = append(out, *p.w.objects[name].DeepCopy())
		}
		return out, nil
	})
}

// changeClass changes a class that is still there.
func (p *Ports) changeClass(ctx context.Context, call, name string, edit func(*awsv1.EC2NodeClass) error) error {
	return tryPort(ctx, p, call, name, func() error {
		c := p.w.objects[name]
		if c == nil {
			return &ConflictError{"class " + name}
		}
		before := c.DeepCopy()
		if err := edit(c); err != nil {
			return err
		}
		if fmt.Sprint(before) != fmt.Sprint(c) {
			p.w.countMutation(call)
			p.w.writeClass(c)
			p.w.collectClass(c)
		}
		return nil
	})
}

// WriteClassStatus stores the status.
func (p *Ports) WriteClassStatus(ctx context.Context, c *awsv1.EC2NodeClass) error {
	return p.changeClass(ctx, "write status of class", c.Name, func(have *awsv1.EC2NodeClass) error {
		if have.ResourceVersion != c.ResourceVersion {
			return &ConflictError{"class " + c.Name}
		}
		have.Status = *c.Status.DeepCopy()
		return nil
	})
}

// MarkClass sets annotations and our finalizer.
func (p *Ports) MarkClass(ctx context.Context, name string, annotations map[string]string) error {
	return p.changeClass(ctx, "mark class", name, func(c *awsv1.EC2NodeClass) error {
		c.Annotations = mergeAnnotations(c.Annotations, annotations)
		if c.DeletionTimestamp == nil {
			c.Finalizers = []string{awsv1.FinalizerTermination}
		}
		return nil
	})
}

// ReleaseClass removes our finalizer.
func (p *Ports) ReleaseClass(ctx context.Context, name string) error {
	err := p.changeClass(ctx, "release class", name, func(c *awsv1.EC2NodeClass) error {
		if _, left := p.w.account.profiles["profile-"+name]; left {
			p.w.addViolation("class released too early", "class %s is released while its instance profile is there",
				name)
		}
		c.Finalizers = nil
		return nil
	})
	if _, gone := errors.AsType[*ConflictError](err); gone {
		return nil
	}
	return err
}

// ListPools lists the NodePools.
func (p *Ports) ListPools(ctx context.Context) ([]v1.NodePool, error) {
	return callPort(ctx, p, "list pools", "", func() (out []v1.NodePool, err error) {
		for _, name := range slices.Sorted(maps.Keys(p.w.nodePools)) {
			out = append(out, *p.w.nodePools[name].DeepCopy())
		}
		return out, nil
	})
}

// WritePoolStatus stores the status of a NodePool.
func (p *Ports) WritePoolStatus(ctx context.Context, np *v1.NodePool) error {
	return tryPort(ctx, p, "write status of pool", np.Name, func() error {
		p.w.countMutation("write status of pool")
		p.w.nodePools[np.Name].Status = *np.Status.DeepCopy()
		return nil
	})
}

// PatchPoolMeta sets annotations of a NodePool.
func (p *Ports) PatchPoolMeta(ctx context.Context, name string, annotations map[string]string) error {
	return tryPort(ctx, p, "annotate pool", name, func() error {
		p.w.countMutation("annotate pool")
		np := p.w.nodePools[name]
		np.Annotations = mergeAnnotations(np.Annotations, annotations)
		return nil
	})
}

// ListNodes lists the nodes.
func (p *Ports) ListNodes(ctx context.Context) ([]cluster.Node, error) {
	return callPort(ctx, p, "list nodes", "", func() ([]cluster.Node, error) { return p.listNodes(), nil })
}

// Refresh stores a catalog that is the same for ever.
func (p *Ports) Refresh(ctx context.Context) (string, error) {
	return "", tryPort(ctx, p, "refresh catalog", "", func() error { return nil })
}

// ReadOfferingInputs has no overlays.
func (p *Ports) ReadOfferingInputs(ctx context.Context) (cluster.Snapshot, []v1alpha1.NodeOverlay, error) {
	return cluster.Snapshot{}, nil, tryPort(ctx, p, "list overlays", "", func() error { return nil })
}

// WriteOverlayStatus is not asked for: there are no overlays.
func (p *Ports) WriteOverlayStatus(context.Context, *v1alpha1.NodeOverlay) error { return nil }

// ListBuffers has none.
func (p *Ports) ListBuffers(ctx context.Context) ([]buffers.Buffer, error) {
	return nil, tryPort(ctx, p, "list buffers", "", func() error { return nil })
}

// WriteBufferStatus is not asked for: there are no buffers.
func (p *Ports) WriteBufferStatus(context.Context, *v1beta1.CapacityBuffer) error { return nil }
