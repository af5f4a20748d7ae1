package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/testing/objects"
)

// classPorts read and write EC2NodeClasses, and look up in AWS what they stand for.
type classPorts struct {
	*caller
	api     *apiServer
	account *account
}

// classReader reads and writes EC2NodeClasses.
type classReader struct {
	*classPorts
	*readPorts
}

// FindAll looks up what a class stands for.
func (p *classPorts) FindAll(ctx context.Context, c *awsv1.EC2NodeClass) nodeclass.Resolved {
	found, err := callPort(ctx, p.caller, "look up class", c.Name, func() (nodeclass.Resolved, error) {
		p.observe(classResolved{c.Name})
		if p.api.classes[c.Name] == nil {
			return nodeclass.Resolved{}, &objects.NotFoundError{What: "class " + c.Name}
		}
		p.account.looked = time.Now()
		return p.account.resolveClass(c), nil
	})
	if err != nil {
		return nodeclass.Resolved{ImagesErr: err, SubnetsErr: err, GroupsErr: err, ReservationsErr: err,
			PlacementErr: err, ProfileErr: err,
			Region: "us-west-2", ServiceCIDR: "172.20.0.0/16"}
	}
	return found
}

// DeleteArtifacts deletes what was made for the class.
func (p *classPorts) DeleteArtifacts(ctx context.Context, c *awsv1.EC2NodeClass) error {
	return tryPort(ctx, p.caller, "forget class", c.Name, func() error {
		p.observe(classForgotten{c.Name})
		delete(p.account.profiles, "profile-"+c.Name)
		p.countMutation("forget class")
		return nil
	})
}

// ListProfiles lists the instance profiles.
func (p *classPorts) ListProfiles(ctx context.Context) ([]nodeclass.Profile, error) {
	return callPort(ctx, p.caller, "list profiles", "", func() (out []nodeclass.Profile, err error) {
		for _, name := range slices.Sorted(maps.Keys(p.account.profiles)) {
			out = append(out, p.account.profiles[name])
		}
		return out, nil
	})
}

// DeleteProfile deletes one.
func (p *classPorts) DeleteProfile(ctx context.Context, name string) error {
	return tryPort(ctx, p.caller, "delete profile", name, func() error {
		delete(p.account.profiles, name)
		p.countMutation("delete profile")
		return nil
	})
}

// ListClasses lists the classes.
func (p *classPorts) ListClasses(ctx context.Context) ([]awsv1.EC2NodeClass, error) {
	return callPort(ctx, p.caller, "list classes", "", func() (out []awsv1.EC2NodeClass, err error) {
		for _, name := range slices.Sorted(maps.Keys(p.api.classes)) {
			out = append(out, *p.api.classes[name].DeepCopy())
		}
		return out, nil
	})
}

// changeClass changes a class that is still there.
func (p *classPorts) changeClass(ctx context.Context, call, name string, edit func(*awsv1.EC2NodeClass) error) error {
	return tryPort(ctx, p.caller, call, name, func() error {
		c := p.api.classes[name]
		if c == nil {
			return &objects.ConflictError{What: "class " + name}
		}
		before := c.DeepCopy()
		if err := edit(c); err != nil {
			return err
		}
		if fmt.Sprint(before) != fmt.Sprint(c) {
			p.countMutation(call)
			p.api.writeClass(c)
			p.api.collectClass(c)
		}
		return nil
	})
}

// WriteClassStatus stores the status.
func (p *classPorts) WriteClassStatus(ctx context.Context, c *awsv1.EC2NodeClass) error {
	return p.changeClass(ctx, "write status of class", c.Name, func(have *awsv1.EC2NodeClass) error {
		if have.ResourceVersion != c.ResourceVersion {
			return &objects.ConflictError{What: "class " + c.Name}
		}
		have.Status = *c.Status.DeepCopy()
		return nil
	})
}

// MarkClass sets annotations and our finalizer.
func (p *classPorts) MarkClass(ctx context.Context, name string, annotations map[string]string) error {
	return p.changeClass(ctx, "mark class", name, func(c *awsv1.EC2NodeClass) error {
		c.Annotations = objects.Merge(c.Annotations, annotations)
		if c.DeletionTimestamp == nil {
			c.Finalizers = []string{awsv1.FinalizerTermination}
		}
		return nil
	})
}

// ReleaseClass removes our finalizer.
func (p *classPorts) ReleaseClass(ctx context.Context, name string) error {
	err := p.changeClass(ctx, "release class", name, func(c *awsv1.EC2NodeClass) error {
		p.observe(classReleased{name})
		c.Finalizers = nil
		return nil
	})
	if _, gone := errors.AsType[*objects.ConflictError](err); gone {
		return nil
	}
	return err
}
