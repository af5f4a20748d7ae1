package translate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
)

// Of an object that a tenant or a kubelet writes little is kept, whichever of its fields is as large as the API server
// takes it: a thousand of them stand in the memory of each function.
func TestOfNoFieldMuchIsKept(t *testing.T) {
	for _, c := range []struct {
		name string
		from any
		most int // KiB
		keep func(any) any
	}{
		{"Pod", corev1.Pod{}, 256, func(o any) any { return Pod(o.(*corev1.Pod)) }},
		{"Pod of a list", corev1.Pod{}, 256, func(o any) any { return (&PodShapes{}).ListPod(o.(*corev1.Pod)) }},
		{"Node", corev1.Node{}, 512, func(o any) any { return Node(o.(*corev1.Node)) }},
		{"Namespace", corev1.Namespace{}, 64, func(o any) any { return Namespace(o.(*corev1.Namespace)) }},
		{"DaemonSet", appsv1.DaemonSet{}, 256, func(o any) any { return NewDaemonTemplate(o.(*appsv1.DaemonSet)) }},
		{"PodDisruptionBudget", policyv1.PodDisruptionBudget{}, 64, func(o any) any { return Budget(o.(*policyv1.PodDisruptionBudget)) }},
		{"PersistentVolumeClaim", corev1.PersistentVolumeClaim{}, 16, func(o any) any { return SlimClaim(o.(*corev1.PersistentVolumeClaim)) }},
		{"CapacityBuffer", v1beta1.CapacityBuffer{}, 16, func(o any) any { return SlimBuffer(o.(*v1beta1.CapacityBuffer)) }},
		{"ResourceClaim", resourcev1.ResourceClaim{}, 64, func(o any) any {
			d := NewClaimedDevices()
			d.AddClaim(o.(*resourcev1.ResourceClaim))
			return d
		}},
		{"ResourceClaimTemplate", resourcev1.ResourceClaimTemplate{}, 64, func(o any) any {
			d := NewDeviceClaims(nil, NewClaimedDevices())
			d.AddTemplate(o.(*resourcev1.ResourceClaimTemplate))
			return d
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := largeFields{of: reflect.TypeOf(c.from)}
			w.walk(w.of, "", func(reflect.Value) reflect.Value { panic("the object itself") })
			if len(w.fields) < 10 {
				t.Fatalf("%d fields", len(w.fields))
			}
			for _, f := range w.fields {
				if validated(f.path) || unread(f.path) {
					continue
				}
				for _, large := range []bool{false, true} { // without a change little is kept of course
					o := reflect.New(w.of)
					if large {
						f.enlarge(o.Elem())
					}
					size := sizeKept(reflect.ValueOf(c.keep(o.Interface())), map[uintptr]bool{})
					if size > c.most<<10 {
						t.Errorf("with %s large %d KiB are kept", f.path, size>>10)
					}
				}
			}
		})
	}
}

// validated reports whether the API server bounds the field by itself, as it does names and words, or another component
// than the owner writes it.
func validated(path string) bool {
	ends := func(end string) bool { return strings.HasSuffix(path, end) }
	return strings.HasPrefix(path, ".Status") || slices.ContainsFunc([]string{".Name", ".Namespace", ".UID", ".ResourceVersion", ".Kind",
		".APIVersion", ".NodeName", ".Protocol", ".Operator", ".Effect", "Tolerations[].Key", "Tolerations[].Value",
		".ResourceClaimName", ".ResourceClaimTemplateName", "AccessModes[]", "Taints[].Key", "Taints[].Value"}, ends)
}

// unread reports whether nothing looks at the field, so that few have to be tried.
func unread(path string) bool {
	return strings.Contains(path, "Volumes[].VolumeSource.") && !strings.Contains(path, "PersistentVolumeClaim") && !strings.Contains(path, ".Ephemeral") ||
		slices.ContainsFunc([]string{"Probe", "Lifecycle", "EphemeralContainers", "SecurityContext", "ManagedFields", ".Env"},
			func(part string) bool { return strings.Contains(path, part) })
}

const largeText, largeAnnotation, largeCount = 1 << 20, 200 << 10, 20_000

// largeFields are the fields of a type of object that may be large, one of which is at a time.
type largeFields struct {
	of     reflect.Type
	fields []largeField
}

type largeField struct {
	path    string
	enlarge func(object reflect.Value)
}

// walk finds the fields below one of the type. find makes what is on the way to it, and returns it.
func (w *largeFields) walk(t reflect.Type, path string, find func(reflect.Value) reflect.Value) {
	if strings.Count(path, ".") > 14 {
		return
	}
	at := func(do func(reflect.Value)) {
		w.fields = append(w.fields, largeField{path, func(o reflect.Value) { do(find(o)) }})
	}
	switch {
	case t == reflect.TypeFor[resource.Quantity]() || t == reflect.TypeFor[metav1.Time]() || t == reflect.TypeFor[metav1.FieldsV1]():
	case t.Kind() == reflect.String:
		at(func(v reflect.Value) { v.SetString(strings.Repeat("x", largeText)) })
	case t.Kind() == reflect.Pointer:
		w.walk(t.Elem(), path, func(o reflect.Value) reflect.Value {
			v := find(o)
			if v.IsNil() {
				v.Set(plausible(t.Elem()))
			}
			return v.Elem()
		})
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.IsExported() {
				continue
			}
			w.walk(f.Type, path+"."+f.Name, func(o reflect.Value) reflect.Value {
				if path == "" {
					return o.Field(i)
				}
				return find(o).Field(i)
			})
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		at(func(v reflect.Value) {
			v.Set(reflect.MakeSlice(t, largeCount, largeCount))
			for i := range largeCount {
				v.Index(i).Set(plausible(t.Elem()).Elem())
				number(v.Index(i), i)
			}
		})
		w.walk(t.Elem(), path+"[]", func(o reflect.Value) reflect.Value {
			v := find(o)
			if v.Len() == 0 {
				v.Set(reflect.Append(v, plausible(t.Elem()).Elem()))
			}
			return v.Index(0)
		})
	case t.Kind() == reflect.Map:
		at(func(v reflect.Value) {
			v.Set(reflect.MakeMap(t))
			for i := range largeCount {
				key, one := reflect.New(t.Key()).Elem(), plausible(t.Elem()).Elem()
				number(key, i)
				number(one, i)
				v.SetMapIndex(key, one)
			}
		})
		if t.Elem().Kind() == reflect.String && strings.HasSuffix(path, "Annotations") {
			for _, key := range append(claimAnnotations(), annotationGeneration, "karpenter.sh/do-not-disrupt", "karpenter.sh/disruption-cost",
				corev1.PodDeletionCost, "joiner.sh/x") {
				w.fields = append(w.fields, largeField{path + "[" + key + "]", func(o reflect.Value) {
					v := find(o)
					v.Set(reflect.MakeMap(t))
					v.SetMapIndex(reflect.ValueOf(key), reflect.ValueOf(strings.Repeat("x", largeAnnotation)))
				}})
			}
		}
	}
}

// plausible is one of the type that is not dropped for what else it lacks.
func plausible(t reflect.Type) reflect.Value {
	v := reflect.New(t)
	switch x := v.Interface().(type) {
	case *corev1.NodeSelectorRequirement:
		*x = corev1.NodeSelectorRequirement{Key: "a", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"b"}}
	case *metav1.LabelSelectorRequirement:
		*x = metav1.LabelSelectorRequirement{Key: "a", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"b"}}
	case *corev1.ContainerPort:
		x.HostPort = 80
	case *corev1.PodCondition:
		x.Type, x.Reason = corev1.PodScheduled, corev1.PodReasonUnschedulable
	case *resource.Quantity:
		*x = resource.MustParse("1")
	case *metav1.OwnerReference:
		yes := true
		x.Controller = &yes
	}
	return v
}

// number makes the value another one for each number.
func number(v reflect.Value, i int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("example.com/x%d", i))
	case reflect.Struct:
		for _, name := range []string{"Key", "Name", "Type"} {
			if f := v.FieldByName(name); f.IsValid() && f.Kind() == reflect.String {
				f.SetString(fmt.Sprintf("x%d", i))
				return
			}
		}
	}
}

// sizeKept is about how many bytes there are behind the value.
func sizeKept(v reflect.Value, seen map[uintptr]bool) (n int) {
	switch v.Kind() {
	case reflect.String:
		at := uintptr(unsafe.Pointer(unsafe.StringData(v.String())))
		if v.Len() == 0 || seen[at] {
			return 0
		}
		seen[at] = true
		return v.Len()
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			return 0
		}
		seen[v.Pointer()] = true
		return int(v.Type().Elem().Size()) + sizeKept(v.Elem(), seen)
	case reflect.Interface:
		return sizeKept(v.Elem(), seen)
	case reflect.Struct:
		for i := range v.NumField() {
			n += sizeKept(v.Field(i), seen)
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice {
			n += v.Cap() * int(v.Type().Elem().Size())
		}
		for i := range v.Len() {
			n += sizeKept(v.Index(i), seen)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			n += int(key.Type().Size()+v.Type().Elem().Size()) + sizeKept(key, seen) + sizeKept(v.MapIndex(key), seen)
		}
	}
	return n
}
