package cli

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"joiner.sh/pkg/cli/migrate"
)

// readController reads how Karpenter's container is started: environment first, then arguments, which override it.
func (s storedObjects) readController(ctx context.Context, namespace string, container map[string]any) (migrate.Options,
	error) {
	o := migrate.Options{Known: true, Values: map[string]string{}}
	sources, _, _ := unstructured.NestedSlice(container, "envFrom")
	for _, one := range sources {
		source, _ := one.(map[string]any)
		name, found, _ := unstructured.NestedString(source, "configMapRef", "name")
		if !found {
			o.Unread = append(o.Unread, "envFrom holds a source that is no ConfigMap")
			continue
		}
		data, why, err := s.readConfigMap(ctx, namespace, name)
		if err != nil {
			return o, err
		}
		if why != "" {
			o.Unread = append(o.Unread, why)
		}
		prefix, _, _ := unstructured.NestedString(source, "prefix")
		for key, value := range data {
			o.Values[prefix+key] = value
		}
	}
	variables, _, _ := unstructured.NestedSlice(container, "env")
	for _, one := range variables {
		v, _ := one.(map[string]any)
		if err := s.readVariable(ctx, namespace, v, &o); err != nil {
			return o, err
		}
	}
	args, _, _ := unstructured.NestedStringSlice(container, "args")
	command, _, _ := unstructured.NestedStringSlice(container, "command")
	o.AddArguments(slices.Concat(command, args))
	return o, nil
}

// readVariable reads one variable, written down or kept in a ConfigMap.
func (s storedObjects) readVariable(ctx context.Context, namespace string, v map[string]any, o *migrate.Options) error {
	name, _, _ := unstructured.NestedString(v, "name")
	if value, found, _ := unstructured.NestedString(v, "value"); found {
		o.Values[name] = value
		return nil
	}
	from, _, _ := unstructured.NestedMap(v, "valueFrom")
	of, kept, _ := unstructured.NestedString(from, "configMapKeyRef", "name")
	switch {
	case kept:
		key, _, _ := unstructured.NestedString(from, "configMapKeyRef", "key")
		data, why, err := s.readConfigMap(ctx, namespace, of)
		if why != "" {
			o.Unread = append(o.Unread, name+": "+why)
		} else if err == nil {
			o.Values[name] = data[key]
		}
		return err
	case from["secretKeyRef"] != nil:
		o.Unread = append(o.Unread, name+": it is in a Secret, which is not read")
	}
	return nil // what the pod says of itself is no option
}

// readConfigMap returns the data of a ConfigMap, or why there is none.
func (s storedObjects) readConfigMap(ctx context.Context, namespace, name string) (data map[string]string, why string,
	err error) {
	m, found, err := s.l.kube.Objects.Get(ctx, "/api/v1/namespaces/"+namespace+"/configmaps/"+name)
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Sprintf("you may not get the ConfigMap %s/%s", namespace, name), nil
	case err != nil:
		return nil, "", err
	case !found:
		return nil, fmt.Sprintf("there is no ConfigMap %s/%s", namespace, name), nil
	}
	data, _, _ = unstructured.NestedStringMap(m.Object, "data")
	return data, "", nil
}
