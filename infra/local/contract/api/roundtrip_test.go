package api

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/api/v1alpha1"
)

// TestAcceptedComesBack stores every manifest of testdata/accepted, reads it into our types, writes it out again and
// expects what the user wrote and what the API server keeps. Together the manifests must set every field that the types
// have.
func TestAcceptedComesBack(t *testing.T) {
	c := newCluster(t)
	files, err := filepath.Glob("testdata/accepted/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	set := map[string]bool{}
	for _, file := range files {
		for _, given := range manifests(t, file) {
			t.Run(filepath.Base(file)+"/"+given.GetKind()+"/"+given.GetName(), func(t *testing.T) {
				c.nameLivingOwner(t, given)
				stored := c.store(t, given)
				typed, again := throughTypes(t, stored)
				for _, lost := range missing("", given.Object, again) {
					t.Errorf("given by the user but not there after a round trip: %s", lost)
				}
				for _, lost := range missing("", stored.Object, again) {
					t.Errorf("kept by the API server but not there after a round trip: %s", lost)
				}
				for _, made := range missing("", again, stored.Object) {
					t.Errorf("made up by the round trip: %s", made)
				}
				markSet(set, given.GetKind(), reflect.ValueOf(typed).Elem())
			})
		}
	}
	for _, field := range slices.Concat(fieldsOf[karpv1.NodePool](), fieldsOf[karpv1.NodeClaim](), fieldsOf[awsv1.EC2NodeClass](),
		fieldsOf[v1alpha1.NodeOverlay](), fieldsOf[v1beta1.CapacityBuffer]()) {
		if !set[field] {
			t.Errorf("no manifest sets %s", field)
		}
	}
}

// nameLivingOwner has what belongs to something belong to a namespace that there is. The garbage collector deletes what
// nobody living owns.
func (c cluster) nameLivingOwner(t *testing.T, given *unstructured.Unstructured) {
	t.Helper()
	owners := given.GetOwnerReferences()
	if len(owners) == 0 {
		return
	}
	living := &unstructured.Unstructured{}
	living.SetAPIVersion("v1")
	living.SetKind("Namespace")
	living, err := c.of(t, living).Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range owners {
		o := &owners[i]
		o.APIVersion, o.Kind, o.Name, o.UID = living.GetAPIVersion(), living.GetKind(), living.GetName(), living.GetUID()
	}
	given.SetOwnerReferences(owners)
}

// store creates the object and writes its status, as its own controllers would.
func (c cluster) store(t *testing.T, given *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	given = given.DeepCopy()
	finalizers := given.GetFinalizers()
	status, hasStatus := given.Object["status"]
	got := c.create(t, given)
	r := c.of(t, given)
	if hasStatus {
		got.Object["status"] = status
		var err error
		if got, err = r.UpdateStatus(t.Context(), got, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Fatalf("update status: %v", err)
		}
	}
	if len(finalizers) > 0 {
		t.Cleanup(func() {
			free := []byte(`{"metadata":{"finalizers":null}}`)
			if _, err := r.Patch(context.Background(), given.GetName(), "application/merge-patch+json", free, metav1.PatchOptions{}); err != nil {
				t.Errorf("remove finalizers: %v", err)
			}
		})
	}
	return got
}

// throughTypes decodes with our scheme's type of the kind and encodes it again.
func throughTypes(t *testing.T, o *unstructured.Unstructured) (typed runtime.Object, again map[string]any) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{karpv1.AddToScheme, awsv1.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	typed, err := scheme.New(o.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	text, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, typed); err != nil {
		t.Fatalf("decode: %v", err)
	}
	if text, err = json.Marshal(typed.DeepCopyObject()); err != nil {
		t.Fatalf("encode: %v", err)
	}
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	unstructuredAgain, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatalf("convert to unstructured: %v", err)
	}
	for _, differs := range append(missing("", again, unstructuredAgain), missing("", unstructuredAgain, again)...) {
		t.Errorf("JSON and unstructured conversion disagree: %s", differs)
	}
	return typed, again
}

// missing lists what of want is not in got. Amounts are compared by value: "1000" may come back as "1k".
func missing(path string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		gotMap, ok := got.(map[string]any)
		if !ok {
			return []string{path}
		}
		var lost []string
		for key, value := range want {
			if _, there := gotMap[key]; !there {
				lost = append(lost, path+"."+key)
				continue
			}
			lost = append(lost, missing(path+"."+key, value, gotMap[key])...)
		}
		slices.Sort(lost)
		return lost
	case []any:
		gotList, ok := got.([]any)
		if !ok || len(gotList) != len(want) {
			return []string{path}
		}
		var lost []string
		for i := range want {
			lost = append(lost, missing(fmt.Sprintf("%s[%d]", path, i), want[i], gotList[i])...)
		}
		return lost
	}
	if fmt.Sprint(want) == fmt.Sprint(got) || sameAmount(want, got) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %v became %v", path, want, got)}
}

func sameAmount(a, b any) bool {
	x, errX := resource.ParseQuantity(fmt.Sprint(a))
	y, errY := resource.ParseQuantity(fmt.Sprint(b))
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

// fieldsOf is every spec and status field of a kind, as Kind.Field.Field, lists and pointers seen through.
func fieldsOf[T any]() []string {
	var fields []string
	walkType(reflect.TypeFor[T](), reflect.TypeFor[T]().Name(), func(path string) { fields = append(fields, path) })
	return fields
}

func walkType(typ reflect.Type, path string, visit func(path string)) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if !isOurs(typ) {
		return
	}
	for i := range typ.NumField() {
		if f := typ.Field(i); f.Tag.Get("json") != "-" && f.Type.Name() != "TypeMeta" && f.Type != reflect.TypeFor[metav1.ObjectMeta]() {
			visit(path + "." + f.Name)
			walkType(f.Type, path+"."+f.Name, visit)
		}
	}
}

func isOurs(typ reflect.Type) bool {
	return typ.Kind() == reflect.Struct && strings.HasPrefix(typ.PkgPath(), "joiner.sh/pkg/api") && !strings.HasSuffix(typ.Name(), "Duration")
}

// markSet notes the fields of a value that are not zero.
func markSet(set map[string]bool, path string, v reflect.Value) {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		markSet(set, path, v.Elem())
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			markSet(set, path, v.Index(i))
		}
	case v.Kind() == reflect.Struct && isOurs(v.Type()):
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				field := path + "." + v.Type().Field(i).Name
				set[field] = true
				markSet(set, field, v.Field(i))
			}
		}
	}
}

// TestDefaults is what the API server fills in for a user who gives only what is required.
func TestDefaults(t *testing.T) {
	c := newCluster(t)
	got := map[string]any{}
	for _, given := range manifests(t, "testdata/smallest.yaml") {
		stored := c.create(t, given)
		got[given.GetKind()+"/"+given.GetName()] = map[string]any{"spec": stored.Object["spec"], "status": stored.Object["status"]}
	}
	text, err := os.ReadFile("testdata/smallest-stored.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object(t, string(text)), normal(t, got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// normal gives numbers the types that reading YAML gives them.
func normal(t *testing.T, v map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return object(t, string(text))
}

func manifests(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for _, document := range strings.Split(string(text), "\n---\n") {
		all = append(all, &unstructured.Unstructured{Object: object(t, document)})
	}
	return all
}
