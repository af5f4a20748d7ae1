package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SharedData keeps what the functions tell each other in ConfigMaps.
type SharedData struct{ *connection }

// ReadData reads a small piece of shared data, kept as a ConfigMap in our namespace. Data that does not exist is nil
// with an empty version, which WriteData takes.
func (s SharedData) ReadData(ctx context.Context, name string) (data map[string]string, version string, err error) {
	m := &corev1.ConfigMap{}
	err = s.getObject(ctx, apiCall{verb: "read", place: configMaps(), namespace: Namespace, name: name}, m)
	if isNotFound(err) {
		return nil, "", nil
	}
	return m.Data, m.ResourceVersion, err
}

// WriteData replaces the data, on the condition that it is still of the version that ReadData gave. Data that was
// changed, made or deleted meanwhile is a *ConflictError; the caller reads again and merges.
func (s SharedData) WriteData(ctx context.Context, name string, data map[string]string, version string) error {
	what := apiCall{verb: "write", place: configMaps(), namespace: Namespace, name: name}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, ResourceVersion: version},
		Data: data}
	if version == "" {
		err := s.createObject(ctx, what, m, &corev1.ConfigMap{})
		if apierrors.IsAlreadyExists(err) {
			return &ConflictError{err}
		}
		return err
	}
	err := s.replaceObject(ctx, what, "", m, &corev1.ConfigMap{})
	if isNotFound(err) {
		return &ConflictError{err}
	}
	return err
}
