package kube

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ConflictError says that the object is no longer what the caller saw: somebody changed, replaced or deleted it.
// Nothing was written; look again and decide again.
type ConflictError struct{ error }

// Unwrap returns the cause.
func (e *ConflictError) Unwrap() error { return e.error }

// Conflict reports true. It lets callers who may not know this package ask errors.As for an interface with this method.
func (e *ConflictError) Conflict() bool { return true }

// NotFoundError says that the object does not exist.
type NotFoundError struct{ error }

// Unwrap returns the cause.
func (e *NotFoundError) Unwrap() error { return e.error }

// NotFound reports true, for callers who may not know this package.
func (e *NotFoundError) NotFound() bool { return true }

// ForbiddenError says that Joiner lacks a right in the cluster.
type ForbiddenError struct{ error }

// Unwrap returns the cause.
func (e *ForbiddenError) Unwrap() error { return e.error }

// Forbidden reports true, for callers who may not know this package.
func (e *ForbiddenError) Forbidden() bool { return true }

// RefusedError says that the API server refuses an object for what it holds: to send it again does not help.
type RefusedError struct {
	error
	labels []string
}

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.error }

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
