package controllers

import (
	"errors"
	"log/slog"
)

// IsNotFound reports whether there is no such object.
func IsNotFound(err error) bool {
	n, ok := errors.AsType[interface {
		error
		NotFound() bool
	}](err)
	return ok && n.NotFound()
}

// IsConflict reports whether a write changed nothing because the object was changed meanwhile.
func IsConflict(err error) bool {
	c, ok := errors.AsType[interface {
		error
		Conflict() bool
	}](err)
	return ok && c.Conflict()
}

// IsForbidden reports whether Joiner lacks a right in the cluster.
func IsForbidden(err error) bool {
	f, ok := errors.AsType[interface {
		error
		Forbidden() bool
	}](err)
	return ok && f.Forbidden()
}

// RefusedLabels are the labels about which the API server refused an object as invalid; refused is false for any other
// error.
func RefusedLabels(err error) (labels []string, refused bool) {
	r, ok := errors.AsType[interface {
		error
		RefusedLabels() []string
	}](err)
	if !ok {
		return nil, false
	}
	return r.RefusedLabels(), true
}

// IgnoreConflict leaves what changed meanwhile to the next pass, which sees the change.
func IgnoreConflict(log *slog.Logger, err error) error {
	if !IsConflict(err) {
		return err
	}
	log.Info("conflict, retrying in next pass", "because", err.Error())
	return nil
}
