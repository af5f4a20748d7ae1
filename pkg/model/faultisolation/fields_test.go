package faultisolation

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
)

// unnamed are the fields in which pods that are alike may differ, and why.
var unnamed = map[string]string{
	"Name":          "each pod has its own",
	"UID":           "each pod has its own",
	"Created":       "each pod has its own",
	"Started":       "each pod has its own",
	"Controller":    "ReplicaSets of one Deployment make the same pods",
	"Phase":         "it passes while the part is left out",
	"Ready":         "it passes while the part is left out",
	"Bound":         "only metrics read it",
	"ReadySince":    "only metrics and rollouts read it",
	"UnreadySince":  "only rollouts read it",
	"Trouble":       "only rollouts read it",
	"NodeName":      "pods that wait and pods that run are parts of two kinds",
	"Nominated":     "it passes while the part is left out",
	"Unscheduled":   "it passes while the part is left out",
	"Unschedulable": "only reasons quote it",
	"Untried":       "it passes while the part is left out",
	"Deleting":      "it passes while the part is left out",
	"UnreadClaims":  "each pod of a StatefulSet has its own",
	"DeviceClaims":  "each pod may have its own",
	"Holds":         "nodes are kept for pods one by one",
	"AskAgain":      "it passes while the part is left out",
	"Volumes.ID":    "each pod of a StatefulSet has its own",
}

// unfixed are the fields that a pod loses which stays where it is and has no rule, and why.
var unfixed = map[string]string{
	"Critical":        "it is not evicted",
	"Bound":           "only metrics read it",
	"ReadySince":      "only metrics and rollouts read it",
	"UnreadySince":    "only rollouts read it, which decide about the whole snapshot",
	"Trouble":         "only rollouts read it, which decide about the whole snapshot",
	"Nominated":       "it has its node",
	"Unscheduled":     "it has its node",
	"Unschedulable":   "it has its node",
	"Untried":         "it has its node",
	"DeletionCost":    "it is not evicted",
	"NeedAnew":        "no other comes in its stead",
	"NeedBounds":      "nobody is told to cut its requests",
	"NodeSelector":    "it is a rule",
	"NodeAffinity":    "it is a rule",
	"NodePrefers":     "it is a rule",
	"Tolerations":     "they are rules",
	"Holds":           "they are rules",
	"Spread":          "it is a rule",
	"Affinity":        "it is a rule",
	"AntiAffinity":    "it is a rule",
	"Prefers":         "it is a rule",
	"Avoids":          "it is a rule",
	"HostPorts":       "they are rules",
	"VolumeZones":     "they are rules",
	"Volumes":         "they are rules; what is attached counts on its node",
	"Requires":        "they are rules",
	"Unmodelled":      "they are rules",
	"UnreadClaims":    "they are rules",
	"DeviceTemplates": "they are rules",
	"DeviceClaims":    "they are rules",
	"AskAgain":        "it is not evicted",
}

// A field that pods gain is in the name of pods that are alike and stays with a pod that is fixed, or has a line above.
func TestPartsKnowEachFieldOfPods(t *testing.T) {
	all := reflect.TypeFor[cluster.Pod]()
	for i := range all.NumField() {
		var p cluster.Pod
		giveValue(reflect.ValueOf(&p).Elem().Field(i))
		name := all.Field(i).Name
		expectOne(t, name, "the name of pods that are alike", nameOf(&p) != nameOf(&cluster.Pod{}), unnamed)
		fixed := reflect.ValueOf(asFixedPod(p)).Field(i)
		expectOne(t, name, "a fixed pod", !fixed.IsZero(), unfixed)
	}
	all = reflect.TypeFor[cluster.Volume]()
	for i := range all.NumField() {
		one := []cluster.Volume{{}}
		giveValue(reflect.ValueOf(&one[0]).Elem().Field(i))
		differs := nameOf(&cluster.Pod{Volumes: one}) != nameOf(&cluster.Pod{Volumes: []cluster.Volume{{}}})
		expectOne(t, "Volumes."+all.Field(i).Name, "the name of pods that are alike", differs, unnamed)
	}
	for _, list := range []map[string]string{unnamed, unfixed} {
		for path := range list {
			field, _, _ := strings.Cut(path, ".")
			if _, ok := reflect.TypeFor[cluster.Pod]().FieldByName(field); !ok {
				t.Errorf("a pod has no %s", path)
			}
		}
	}
}

// whole are the lists of a snapshot that no decision is taken without, and why.
var whole = map[string]string{
	"Nodes":       "what runs on them would be bought again",
	"Classes":     "nothing is launched without them; a NodePool is left out instead",
	"Rollouts":    "they are heeded before: what they allow is in the NodePools",
	"Namespaces":  "a term that names them would select other pods",
	"Budgets":     "more would be evicted without them",
	"Instances":   "EC2 tells them",
	"Impaired":    "EC2 tells them",
	"Changes":     "EC2 tells them",
	"Attachments": "nodes are drained by them",
	"Aside":       "it is what is left out",
	"Unused":      "the nodes would be bought again",
	"Unavailable": "they would be launched again",
}

// A list that snapshots gain can be left out, or has a line above.
func TestPartsKnowEachListOfSnapshots(t *testing.T) {
	all := reflect.TypeFor[cluster.Snapshot]()
	for i := range all.NumField() {
		if f := all.Field(i); f.Type.Kind() == reflect.Slice {
			var s cluster.Snapshot
			v := reflect.ValueOf(&s).Elem().Field(i)
			v.Set(reflect.MakeSlice(f.Type, 1, 1))
			expectOne(t, f.Name, "the parts of a snapshot", len(takeInventory(s, true).byKey) > 0, whole)
		}
	}
}

// expectOne wants a field to be known or to have a reason, and not both.
func expectOne(t *testing.T, path, where string, known bool, reasons map[string]string) {
	t.Helper()
	switch why := reasons[path]; {
	case known && why != "":
		t.Errorf("%s is in %s, although %s", path, where, why)
	case !known && why == "":
		t.Errorf("%s is not in %s, and nobody said why", path, where)
	}
}

// giveValue sets a value, and what is in it, to something else than zero.
func giveValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		giveValue(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		giveValue(key)
		giveValue(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		giveValue(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0)))
			return
		}
		for i := range v.NumField() {
			giveValue(v.Field(i))
		}
	default:
		panic("no value for " + v.Type().String())
	}
}
