package podclass

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

// unsigned are the fields of a pod that are not in its signature, and why no rule can tell pods apart by them.
var unsigned = map[string]string{
	"Name":            "names order the pods of a kind",
	"UID":             "names order the pods of a kind",
	"Created":         "age orders the pods of a kind",
	"Started":         "only who needs a place depends on it, which is decided before",
	"Critical":        "the eviction of pods depends on it",
	"Owner":           "only who needs a place depends on it, which is decided before",
	"Controller":      "the eviction of pods depends on it",
	"Phase":           "only who needs a place depends on it, which is decided before",
	"Ready":           "only who needs a place depends on it, which is decided before",
	"Nominated":       "only who needs a place depends on it, which is decided before",
	"Unscheduled":     "only who needs a place depends on it, which is decided before",
	"Untried":         "only who needs a place depends on it, which is decided before",
	"Deleting":        "only who needs a place depends on it, which is decided before",
	"GraceSec":        "only who needs a place depends on it, which is decided before",
	"DoNotDisrupt":    "only who needs a place depends on it, which is decided before",
	"DeletionCost":    "the cost of disruption depends on it",
	"Holds":           "held nodes take the pods that are named on their claims",
	"Unmodelled":      "such pods have no place, which is decided before",
	"AskAgain":        "the eviction of pods depends on it",
	"NeedBounds":      "only what people may cut of its requests depends on it",
	"NeedAnew":        "it takes the place of what a pod needs before pods are told apart",
	"Virtual":         "such a pod is packed as any other",
	"UnreadClaims":    "such pods have no place, which is decided before",
	"DeviceTemplates": "such pods have no place, which is decided before",
	"DeviceClaims":    "such pods have no place, which is decided before",
	"Bound":           "only metrics tell it",
	"Unschedulable":   "only reasons quote it",
	"ReadySince":      "only metrics and rollouts read it",
	"Trouble":         "only rollouts read it",
	"UnreadySince":    "only rollouts read it",
}

// Pods that differ in anything that a rule reads are of different classes: each field of a pod, however deep, is in its
// signature or on the list above.
func TestSignatureHasWhatRulesRead(t *testing.T) {
	var p cluster.Pod
	fill(reflect.ValueOf(&p).Elem(), new(int64))
	p.Volumes = append(p.Volumes, cluster.Volume{Driver: p.Volumes[0].Driver, ID: "zz-own"})
	sig := Signature{shared: map[cluster.Volume]bool{p.Volumes[0]: true}, moving: map[string]bool{p.NodeName: true}}
	for key := range p.Labels {
		sig.labels = append(sig.labels, key)
	}
	before := string(sig.podSignature(&p))
	change(reflect.ValueOf(&p).Elem(), "", func(path string) {
		field := strings.FieldsFunc(path, func(c rune) bool { return c == '.' || c == '[' })[0]
		signed := string(sig.podSignature(&p)) != before
		switch why := unsigned[field]; {
		case signed && why != "":
			t.Errorf("%s is in the signature, although %s", path, why)
		case !signed && why == "" && path != "Volumes[1].ID": // a volume of its own is like any other
			t.Errorf("two pods that differ in %s are of one kind", path)
		}
	})
	for name := range unsigned {
		if _, ok := reflect.TypeFor[cluster.Pod]().FieldByName(name); !ok {
			t.Errorf("a pod has no %s", name)
		}
	}
	if string(sig.podSignature(&p)) != before {
		t.Error("the test did not put back what it changed")
	}
}

// Pods that differ in anything that a filter of kube-scheduler reads have different texts, but for ports and volumes.
func TestFilterTextHasWhatFiltersRead(t *testing.T) {
	var p cluster.Pod
	fill(reflect.ValueOf(&p).Elem(), new(int64))
	unread := strings.Fields("NodeName Priority Need NodePrefers Prefers Avoids HostPorts Volumes") // NeedAnew is read
	var sig Signature
	before := string(sig.FilterText(&p))
	change(reflect.ValueOf(&p).Elem(), "", func(path string) {
		field := strings.FieldsFunc(path, func(c rune) bool { return c == '.' || c == '[' })[0]
		want := field == "NeedAnew" || unsigned[field] == "" && !slices.Contains(unread, field)
		if got := string(sig.FilterText(&p)) != before; got != want {
			t.Errorf("pods that differ in %s have different texts: %t, want %t", path, got, want)
		}
	})
}

// The same words in other places are other rules.
func TestSignatureTellsWhereWordsStand(t *testing.T) {
	a, b := requirements.Of("a", "x"), requirements.Of("b", "x")
	terms := []cluster.AffinityTerm{{Key: "k", Selector: &cluster.Selector{}}}
	weighted := []cluster.WeightedAffinityTerm{{Weight: 1, Term: terms[0]}}
	var sig Signature
	texts := map[string]int{}
	for i, p := range []cluster.Pod{
		{Affinity: terms}, {AntiAffinity: terms}, {Prefers: weighted}, {Avoids: weighted},
		{NodeAffinity: [][]requirements.Requirement{{a}, {b}}}, {NodeAffinity: [][]requirements.Requirement{{a, b}}}, {NodeAffinity: [][]requirements.Requirement{{a}}},
		{VolumeZones: [][]requirements.Requirement{{a}, {b}}}, {VolumeZones: [][]requirements.Requirement{{a, b}}}, {VolumeZones: [][]requirements.Requirement{{a}}},
		{NodeAffinity: [][]requirements.Requirement{{a}}, VolumeZones: [][]requirements.Requirement{{b}}},
		{NodePrefers: []cluster.WeightedRequirements{{Requirements: []requirements.Requirement{a}}}}, {NodeSelector: map[string]string{"a": "x"}},
		{NodeSelector: map[string]string{"a": "x", "b": "x"}},
		{Tolerations: []cluster.Toleration{{Key: "a"}}}, {Tolerations: []cluster.Toleration{{Operator: "a"}}}, {Tolerations: []cluster.Toleration{{Key: "a"}, {}}},
		{Affinity: []cluster.AffinityTerm{{Key: "k", Namespaces: []string{"n"}}}}, {Affinity: []cluster.AffinityTerm{{Key: "k", Namespaces: []string{"n", "n"}}}},
		{HostPorts: []cluster.HostPort{{Protocol: "a"}}}, {HostPorts: []cluster.HostPort{{IP: "a"}}}, {},
	} {
		text := string(sig.podSignature(&p))
		if other, ok := texts[text]; ok {
			t.Errorf("pods %d and %d are of one kind", other, i)
		}
		texts[text] = i
	}
}

// fill gives every field of the value, however deep, one that is not zero and like no other.
func fill(v reflect.Value, n *int64) {
	*n++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(*n, 0)))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case v.Kind() == reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	default:
		v.Set(another(v, *n))
	}
}

// change makes every part of the value another, or leaves it out, one after the other, and calls seen with its path
// meanwhile.
func change(v reflect.Value, path string, seen func(path string)) {
	before := reflect.New(v.Type()).Elem()
	before.Set(v)
	try := func(to reflect.Value) {
		v.Set(to)
		seen(path)
		v.Set(before)
	}
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		try(reflect.ValueOf(v.Interface().(time.Time).Add(time.Hour)))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			change(v.Field(i), strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."), seen)
		}
	case v.Kind() == reflect.Slice:
		try(reflect.Zero(v.Type()))
		for i := range v.Len() {
			change(v.Index(i), fmt.Sprintf("%s[%d]", path, i), seen)
		}
	case v.Kind() == reflect.Map:
		try(reflect.Zero(v.Type()))
		for _, key := range v.MapKeys() {
			other := reflect.MakeMap(v.Type())
			other.SetMapIndex(key, another(v.MapIndex(key), 1000))
			try(other)
		}
	case v.Kind() == reflect.Pointer:
		try(reflect.Zero(v.Type()))
		change(v.Elem(), path, seen)
	default:
		try(another(v, 1000))
	}
}

// another is a value of the same type that the number tells from others.
func another(v reflect.Value, n int64) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		out.SetString(fmt.Sprintf("text-%04d", n))
	case reflect.Bool:
		out.SetBool(!v.Bool())
	case reflect.Int64, reflect.Int32, reflect.Int:
		out.SetInt(n)
	default:
		panic("another kind of field: " + v.Type().String())
	}
	return out
}

// Pods that are read from one cache may share a map of labels, and are alike only in one namespace.
func TestIdentityHasTheNamespaceOfSharedLabels(t *testing.T) {
	labels := map[string]string{"app": "web"}
	a, b := cluster.Pod{Namespace: "a", Labels: labels}, cluster.Pod{Namespace: "b", Labels: labels}
	cache, sig := &IdentityCache{}, &Signature{labels: []string{"app"}}
	first, other := cache.IdentityOf(sig, &a), cache.IdentityOf(sig, &b)
	if first == other {
		t.Errorf("pods of namespaces a and b are both %q", first)
	}
	if again := cache.IdentityOf(sig, &a); again != first {
		t.Errorf("the same pod is %q and then %q", first, again)
	}
}
