package kube

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ConflictError says that the object is no longer what the caller saw: somebody changed, replaced or deleted it.
// Nothing was written; look again and decide again.
type ConflictError struct{ err error }

// Error names the call and the object.
func (e *ConflictError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *ConflictError) Unwrap() error { return e.err }

// Conflict reports true. It lets callers who may not know this package ask errors.As for an interface with this method.
func (e *ConflictError) Conflict() bool { return true }

// NotFoundError says that the object does not exist.
type NotFoundError struct{ err error }

// Error names the call and the object.
func (e *NotFoundError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *NotFoundError) Unwrap() error { return e.err }

// NotFound reports true, for callers who may not know this package.
func (e *NotFoundError) NotFound() bool { return true }

// ForbiddenError says that Joiner lacks a right in the cluster.
type ForbiddenError struct{ err error }

// Error names the call, the object and the right.
func (e *ForbiddenError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *ForbiddenError) Unwrap() error { return e.err }

// Forbidden reports true, for callers who may not know this package.
func (e *ForbiddenError) Forbidden() bool { return true }

// RefusedError says that the API server refuses an object for what it holds: to send it again does not help.
type RefusedError struct {
	err    error
	labels []string
}

// Error names the call, the object and what is wrong with it.
func (e *RefusedError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.err }

// RefusedLabels are the keys of the labels that the refusal is about, sorted, for callers who may not know this
// package.
func (e *RefusedError) RefusedLabels() []string { return e.labels }

// wrapError names what failed, and gives conflicts and absence types of their own.
func wrapError(what apiCall, err error) error {
	wrapped := fmt.Errorf("%s: %w", what, err)
	switch {
	case apierrors.IsConflict(err):
		return &ConflictError{wrapped}
	case apierrors.IsNotFound(err):
		return &NotFoundError{wrapped}
	}
	return wrapped
}

// newConflict is a ConflictError that we found ourselves.
func newConflict(what apiCall, format string, args ...any) error {
	return &ConflictError{fmt.Errorf("%s: %w", what, fmt.Errorf(format, args...))}
}

func isNotFound(err error) bool { return apierrors.IsNotFound(err) }
func isConflict(err error) bool { return apierrors.IsConflict(err) }
