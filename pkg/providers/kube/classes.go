package kube

import (
	"context"
	"slices"
	"strings"

	awsv1 "joiner.sh/pkg/api/aws/v1"
)

// Classes reads and writes EC2NodeClasses.
type Classes struct{ *connection }

// ListClasses lists the EC2NodeClasses, sorted by name.
func (c Classes) ListClasses(ctx context.Context) ([]awsv1.EC2NodeClass, error) {
	out, _, err := listAll(ctx, c.connection, listQuery{place: classPath()},
		func(l *awsv1.EC2NodeClassList) []awsv1.EC2NodeClass { return l.Items })
	slices.SortFunc(out, func(a, b awsv1.EC2NodeClass) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// ReadClass reads one EC2NodeClass. The error is a *NotFoundError if there is none.
func (c Classes) ReadClass(ctx context.Context, name string) (*awsv1.EC2NodeClass, error) {
	out := &awsv1.EC2NodeClass{}
	if err := c.getObject(ctx, apiCall{verb: "get", place: classPath(), name: name}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// WriteClassStatus stores the status of the class, on the condition that the class was not changed since it was read.
// On success the class given is as stored.
func (c Classes) WriteClassStatus(ctx context.Context, class *awsv1.EC2NodeClass) error {
	return writeStatus(ctx, c.connection, classPath(), awsv1.GroupVersion().WithKind(awsv1.EC2NodeClassKind), class)
}

// PatchClassMeta changes annotations and finalizers of a class. It writes nothing if all is as wanted already. A class
// that is gone is a *ConflictError, unless all that was wanted is to drop a finalizer.
func (c Classes) PatchClassMeta(ctx context.Context, name string, m MetaChange) error {
	_, err := changeObject(ctx, c.connection, apiCall{verb: "patch", place: classPath(), name: name},
		func(o *awsv1.EC2NodeClass) patchFields { return m.asPatch(o) })
	if isNotFound(err) && len(m.Annotations) == 0 && m.AddFinalizer == "" {
		return nil
	}
	return err
}
