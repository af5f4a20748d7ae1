package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// prepareCRD makes a CRD that is in the cluster already ready for ours. The API server refuses to drop a version in
// which objects may be stored, so those are rewritten first; and a conversion webhook, such as Karpenter 1.0 left
// behind, goes, because ours need none and its service may be gone.
func (s *Setup) prepareCRD(ctx context.Context, ours *unstructured.Unstructured) error {
	path := definitions + "/" + ours.GetName()
	have, found, err := s.Cluster.Get(ctx, path)
	if err != nil || !found {
		return err
	}
	_, keep := crdVersions(ours)
	stored, _, _ := unstructured.NestedStringSlice(have.Object, "status", "storedVersions") // none where it has others
	stale := slices.DeleteFunc(stored, func(v string) bool { return slices.Contains(keep, v) })
	if len(stale) > 0 {
		if err := s.migrateStorage(ctx, have, keep, stale); err != nil {
			return err
		}
	}
	if how, _, _ := unstructured.NestedString(have.Object, "spec", "conversion", "strategy"); how == "Webhook" {
		s.Log.Info("removed conversion webhook", "crd", ours.GetName())
		return s.Cluster.Patch(ctx, path, map[string]any{
			"spec": map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}}})
	}
	return nil
}

// migrateStorage writes every object anew, which stores it in the version of today, and then says so in the CRD's
// status.
func (s *Setup) migrateStorage(ctx context.Context, have *unstructured.Unstructured, keep, stale []string) error {
	storage, _ := crdVersions(have)
	if !slices.Contains(keep, storage) {
		return fmt.Errorf("upgrade CRD %s: the cluster stores %s, which Joiner does not know (it knows %s): upgrade Karpenter to 1.1 or newer first, "+
			"which converts the objects, and deploy again", have.GetName(), storage, strings.Join(keep, ", "))
	}
	group, _, _ := unstructured.NestedString(have.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(have.Object, "spec", "names", "plural")
	at, n := "/apis/"+group+"/"+storage+"/"+plural, 0
	err := s.Cluster.List(ctx, at, func(o *unstructured.Unstructured) error {
		n++
		err := s.Cluster.Replace(ctx, at+"/"+o.GetName(), o)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil // somebody wrote or deleted it just now, which does as well
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("upgrade CRD %s: rewrite objects stored as %s: %w", have.GetName(), strings.Join(stale, ", "),
			err)
	}
	s.Log.Info("rewrote stored objects", "crd", have.GetName(), "objects", n, "version", storage)
	return s.Cluster.Patch(ctx, definitions+"/"+have.GetName()+"/status",
		map[string]any{"status": map[string]any{"storedVersions": []string{storage}}})
}

// crdVersions are the names of a CRD's versions and which of them objects are stored in.
func crdVersions(crd *unstructured.Unstructured) (storage string, all []string) {
	list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range list {
		m, _ := v.(map[string]any)
		name, _ := m["name"].(string)
		all = append(all, name)
		if stored, _ := m["storage"].(bool); stored {
			storage = name
		}
	}
	return storage, all
}

// awaitEstablished waits until the API server serves the kind.
func (s *Setup) awaitEstablished(ctx context.Context, name string) error {
	return s.pollUntil(ctx, s.Patience, func(ctx context.Context) (error, bool, error) {
		o, found, err := s.Cluster.Get(ctx, definitions+"/"+name)
		if err != nil {
			return nil, false, err
		}
		if !found {
			return errors.New("CRD " + name + " is gone again"), false, nil
		}
		state, done := conditionText(o, "Established")
		if state == "" {
			state, _ = conditionText(o, "NamesAccepted")
		}
		return fmt.Errorf("CRD %s is not served: %s", name, state), done, nil
	})
}

// conditionText is one condition of an object in words, and whether it is true.
func conditionText(o *unstructured.Unstructured, kind string) (string, bool) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		if m, ok := c.(map[string]any); ok && m["type"] == kind {
			return fmt.Sprintf("%v=%v %v %v", kind, m["status"], m["reason"], m["message"]), m["status"] == "True"
		}
	}
	return "", false
}
