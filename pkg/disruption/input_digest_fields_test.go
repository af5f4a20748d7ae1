package disruption

import (
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
)

// fixed is the reason why a field need not be summed that a pod with its UID keeps.
const fixed = "no pod with this UID gets another"

// notOfPods are the fields in which a pod may differ without a change of the digest, and why.
var notOfPods = map[string]string{
	"Created":        fixed,
	"Started":        "no plan reads it",
	"Critical":       fixed,
	"Controller":     "only rollouts and nominations read it, and who is nominated changes the baseline",
	"Ready":          "it decides who may go, which is summed with the nodes",
	"Bound":          "only metrics read it",
	"ReadySince":     "only metrics and rollouts read it",
	"UnreadySince":   "only rollouts read it",
	"Trouble":        "only rollouts read it",
	"Unschedulable":  "only reasons quote it",
	"Untried":        "who waits has its place in the baseline, or is not in it",
	"GraceSec":       fixed,
	"NeedBounds":     "only advice reads it",
	"NodeSelector[]": fixed,
	"NodeAffinity":   fixed,
	"NodePrefers":    fixed,
	"Tolerations[]":  "people can add some, which changes their number, and change none",
	"Spread[]":       fixed,
	"Affinity":       fixed,
	"AntiAffinity":   fixed,
	"Prefers":        fixed,
	"Avoids":         fixed,
	"HostPorts":      fixed,
	"AskAgain":       "only drains read it",
}

// notOfStoredPods are those of pods that are summed as they are stored.
var notOfStoredPods = map[string]string{
	"Bound":         "only metrics read it",
	"ReadySince":    "only metrics and rollouts read it",
	"UnreadySince":  "only rollouts read it",
	"Trouble":       "only rollouts read it",
	"Unschedulable": "only reasons quote it",
	"Untried":       "who waits has its place in the baseline, or is not in it",
}

// notOfVirtualPods are those of pods that stand for room to be kept free.
var notOfVirtualPods = func() map[string]string {
	all := maps.Clone(notOfStoredPods)
	all["Virtual"] = "it is what they are"
	return all
}()

var notOfNodes = map[string]string{
	"UID":         "its name tells it apart",
	"ProviderID":  "the NodeClaim that it joins is summed",
	"Created":     "it is initialized, which is summed",
	"Annotations": "they decide who may go, which is summed",
	"ReadySince":  "until nominated pods had their time no digest is like another",
	"Finalizer":   "no plan reads it",
	"Conditions":  "only repair reads them",
}

var notOfClaims = map[string]string{
	"UID":              "its name tells it apart",
	"Version":          "no plan reads it",
	"Generation":       "no plan reads it",
	"PoolUID":          "its pool's name is summed",
	"Class":            "nobody can change it",
	"Created":          "nobody can change it",
	"Finalizer":        "no plan reads it",
	"Annotations":      "they decide who may go and who is marked, which is summed",
	"Requirements":     "nobody can change them",
	"Requests":         "nobody can change them",
	"Taints":           "nobody can change them",
	"StartupTaints":    "nobody can change them",
	"ExpireAfter":      "nobody can change it",
	"TerminationGrace": "nobody can change it",
	"ProviderID":       "the Node that it joins is summed",
	"NodeName":         "the Node that it joins is summed",
	"ImageID":          "only drift reads it, which decides who may go",
	"Conditions":       "that it is initialized is summed, and who may go",
	"LastPodEvent":     "it decides who may go, which is summed",
}

// ofCatalog is the reason why what EC2 says of a type need not be summed.
const ofCatalog = "when the catalog was read is summed, and its class"

var notOfTypes = map[string]string{
	"Requirements":                          ofCatalog,
	"Capacity":                              "what pods can have of it is summed",
	"Offerings[].OfferingKey.Type":          "it is that of the type",
	"Offerings[].ZoneID":                    ofCatalog,
	"Offerings[].DeclaredUSD":               "it is a part of NodeUSD, which is summed",
	"Offerings[].Why":                       "only reasons quote it",
	"Offerings[].Reservation.Type":          "its class is summed, with the reservations",
	"Offerings[].Reservation.Zone":          "its class is summed, with the reservations",
	"Offerings[].Reservation.Kind":          "its class is summed, with the reservations",
	"Offerings[].Reservation.Interruptible": "its class is summed, with the reservations",
	"Offerings[].Reservation.Expiring":      "its class is summed, with the reservations",
	"Offerings[].Reservation.Ends":          "its class is summed, with the reservations",
	"MaxPods":                               "what pods can have is summed",
	"Reserved":                              "what pods can have is summed",
	"ImageID":                               "its class is summed, with the images",
	"EBSVolumes":                            ofCatalog,
	"EFADevices":                            ofCatalog,
	"PartOfGPU":                             ofCatalog,
	"PriceOverlaid":                         "overlays are summed",
	"CapacityOverlaid":                      "overlays are summed",
}

// A field that one of these types gains makes a difference to the digest, or has a line that says why it need not. What
// a list holds counts as a field: that its length is summed does not sum what is in it.
func TestDigestKnowsEachField(t *testing.T) {
	d := fieldCheck{t: t}
	checkFields(&d, "Pod", (*inputDigest).addPod, notOfPods)
	checkFields(&d, "virtual Pod", func(x *inputDigest, p *cluster.Pod) {
		virtual := *p
		virtual.Virtual = true
		x.addPod(&virtual)
	}, notOfVirtualPods)
	checkFields(&d, "Claim", func(x *inputDigest, c *cluster.Claim) {
		n := stateNode{StateNode: cluster.StateNode{Node: &cluster.Node{}, Claim: c}}
		x.addStateNode(&State{}, &n)
	}, notOfClaims)
	checkFields(&d, "Node", (*inputDigest).addNode, notOfNodes)
	checkFields(&d, "Type", (*inputDigest).addType, notOfTypes)
	checkFields(&d, "Pool", func(x *inputDigest, p *cluster.Pool) { x.asJSON(p) }, nil)
	checkFields(&d, "Daemon", func(x *inputDigest, p *cluster.Pod) { x.asJSON(p) }, notOfStoredPods)
	checkFields(&d, "Class", func(x *inputDigest, c *instancetypes.Class) { x.asJSON(c) }, nil)
	checkFields(&d, "Overlay", func(x *inputDigest, o *cluster.Overlay) { x.asJSON(o) }, nil)
	checkFields(&d, "Namespace", func(x *inputDigest, n *cluster.Namespace) { x.asJSON(n) }, nil)
	checkFields(&d, "PodDisruptionBudget", func(x *inputDigest, b *cluster.PodDisruptionBudget) { x.asJSON(b) }, nil)
	checkFields(&d, "Settings", func(x *inputDigest, s *cluster.Settings) { x.asJSON(s) },
		map[string]string{"PackingEffort": "no setting asks for it"})
}

// fieldCheck finds the fields of one type that a digest forgets.
type fieldCheck struct {
	t       *testing.T
	name    string
	sum     func() uint64
	excused map[string]string
	needed  map[string]bool // excuses that were
}

func checkFields[T any](d *fieldCheck, name string, add func(*inputDigest, *T), excused map[string]string) {
	v := new(T)
	d.name, d.excused, d.needed = name, excused, map[string]bool{}
	d.sum = func() uint64 {
		var x inputDigest
		add(&x, v)
		return x.sum()
	}
	d.visit("", reflect.ValueOf(v).Elem())
	for path, why := range excused {
		if !d.needed[path] {
			d.t.Errorf("%s has no %s that is not summed, although %s", name, path, why)
		}
	}
}

// visit gives the value, and each value in it, something else than zero in turn, and takes it away again.
func (d *fieldCheck) visit(path string, v reflect.Value) {
	switch was := reflect.Zero(v.Type()); v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if _, whole := wholeValues[v.Type()]; !whole {
				d.visit(strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."), v.Field(i))
			}
		}
		if value, ok := wholeValues[v.Type()]; ok {
			d.change(path, v, reflect.ValueOf(value))
			v.Set(was)
		}
	case reflect.Slice:
		d.change(path, v, reflect.MakeSlice(v.Type(), 1, 1))
		d.visit(path+"[]", v.Index(0))
		v.Set(was)
	case reflect.Pointer:
		d.change(path, v, reflect.New(v.Type().Elem()))
		d.visit(path, v.Elem())
		v.Set(was)
	case reflect.Map:
		one := reflect.MakeMap(v.Type())
		value := reflect.New(v.Type().Elem()).Elem()
		one.SetMapIndex(reflect.Zero(v.Type().Key()), value)
		d.change(path, v, one)
		if value.Kind() == reflect.String || value.CanInt() {
			other := reflect.MakeMap(v.Type())
			other.SetMapIndex(reflect.Zero(v.Type().Key()), otherThanZero(value.Type()))
			d.change(path+"[]", v, other)
		}
		v.Set(was)
	default:
		d.change(path, v, otherThanZero(v.Type()))
		v.Set(was)
	}
}

// change wants the digest to differ with the new value, or an excuse for the path or what it is in.
func (d *fieldCheck) change(path string, v, to reflect.Value) {
	before := d.sum()
	v.Set(to)
	if d.sum() != before {
		return
	}
	for at := range d.excused {
		if at == path || strings.HasPrefix(path, at+".") || strings.HasPrefix(path, at+"[]") {
			d.needed[at] = true
			return
		}
	}
	d.t.Errorf("the digest forgets %s of a %s, and nobody said why", path, d.name)
}

// wholeValues are values of structs whose fields are not set one by one.
var wholeValues = map[reflect.Type]any{
	reflect.TypeFor[time.Time]():        time.Unix(1, 0),
	reflect.TypeFor[requirements.Set](): requirements.NewSet(requirements.Of("a", "b")),
}

func otherThanZero(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case v.Kind() == reflect.String:
		v.SetString("x")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(7)
	case v.CanFloat():
		v.SetFloat(7)
	default:
		panic("no value for " + t.String())
	}
	return v
}
