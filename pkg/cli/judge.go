package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/cli/convert"
	"joiner.sh/pkg/install/crdcheck"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/workload"
	"joiner.sh/pkg/workload/manifest"
)

// verdicts holds the API server's judgement of objects that have a CRD of ours.
type verdicts struct {
	dropped, refused []string          // in words, with file and line
	names            map[string]string // why an object is refused, by kind and name
}

// judgeObjects asks the CRDs about the objects.
func judgeObjects(objects []convert.Object) (verdicts, error) {
	v := verdicts{names: map[string]string{}}
	var judge *crdcheck.Judge
	for _, o := range objects {
		source := o.Source()
		if !o.Converted() && !strings.HasPrefix(source.APIVersion, api.Group+"/") &&
			!strings.HasPrefix(source.APIVersion, awsv1.Group+"/") {
			continue
		}
		body, err := bodyOf(o)
		if err == nil && judge == nil {
			judge, err = crdcheck.NewJudge()
		}
		if err != nil {
			return v, err
		}
		if err := v.addObject(judge, source, body); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (v *verdicts) addObject(judge *crdcheck.Judge, source manifest.Document, body []byte) error {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return fmt.Errorf("read %s: %w", source.Object(), err)
	}
	one, _, err := judge.Judge(head.APIVersion, head.Kind, body)
	if err != nil {
		return err
	}
	key := head.Kind + " " + head.Metadata.Name
	complain := func(field, format string, args ...any) string {
		e := source.Errorf(field, format, args...)
		if e.Object != key { // the field is one of what was made, and not of what the file has
			e.Object = key + ", made of " + e.Object
		}
		return e.Error()
	}
	for _, field := range one.Unknown {
		v.dropped = append(v.dropped, complain(field, "the API server drops it: %s %s has no such field",
			head.APIVersion, head.Kind))
	}
	for _, e := range one.Refused {
		v.refused = append(v.refused, complain(e.Field, "the API server refuses it: %s", e.ErrorBody()))
		if v.names[key] == "" {
			v.names[key] = e.Error()
		}
	}
	return nil
}

// poolNotes say, with file and line, which NodePools nothing can be bought for, and which name a class that is not
// among the objects although classes are.
func poolNotes(docs []manifest.Document, load instancetypes.Catalog) []string {
	types := instancetypes.ResolveTypes(load, instancetypes.DefaultClass(load), nil, workload.CreationTime())
	classes := map[string]bool{}
	for _, d := range docs {
		if d.Kind == "EC2NodeClass" {
			classes[d.Name] = true
		}
	}
	var notes []string
	for _, d := range docs {
		var p api.NodePool
		if !isNodePool(d) {
			continue
		}
		if _, err := d.Decode(&p); err != nil {
			continue // collecting says so
		}
		notes = append(notes, unmetRequirements(d, p, load, types)...)
		if ref := p.Spec.Template.Spec.NodeClassRef; ref != nil && isOurClass(*ref) && len(classes) > 0 &&
			!classes[ref.Name] {
			notes = append(notes, d.Errorf("spec.template.spec.nodeClassRef.name",
				"no EC2NodeClass %s is among the files, which have %s; one with defaults is taken", ref.Name,
				strings.Join(slices.Sorted(maps.Keys(classes)), ", ")).Error())
		}
	}
	return notes
}

// isOurClass reports whether the reference is to an EC2NodeClass, as those of older files are that name no group.
func isOurClass(ref api.NodeClassReference) bool {
	return ref.Group == "" || ref.Group == awsv1.Group && ref.Kind == "EC2NodeClass"
}

// unmetRequirements names the requirements of the pool that no type meets: each that fails by itself, else all.
func unmetRequirements(d manifest.Document, p api.NodePool, load instancetypes.Catalog,
	types []instancetypes.Type) []string {
	meets := func(rs ...requirements.Requirement) bool {
		want := requirements.NewSet(rs...)
		return slices.ContainsFunc(types, func(t instancetypes.Type) bool { return want.Intersects(t.Requirements) })
	}
	const at = "spec.template.spec.requirements"
	var all []requirements.Requirement
	var notes []string
	for i, r := range p.Spec.Template.Spec.Requirements {
		one, err := requirements.NewRequirement(r.Key, requirements.Operator(r.Operator), r.Values...)
		known := slices.ContainsFunc(types, func(t instancetypes.Type) bool {
			_, has := t.Requirements.Get(r.Key)
			return has
		})
		if rest, auto := strings.CutPrefix(r.Key, "eks.amazonaws.com/instance-"); auto {
			notes = append(notes, d.Errorf(fmt.Sprintf("%s[%d].key", at, i), "%s is a label of EKS Auto Mode, which says nothing "+
				"of a type here: write karpenter.k8s.aws/instance-%s", r.Key, rest).Error())
		}
		if err != nil || !known || r.Key == corev1.LabelOSStable { // which is that of the class
			continue
		}
		if all = append(all, one); !meets(one) {
			notes = append(notes, d.Errorf(fmt.Sprintf("%s[%d]", at, i), "no instance type of %s has %s %s %s%s",
				load.Region, r.Key, r.Operator, strings.Join(r.Values, ", "), regionHint(r.Key, load)).Error())
		}
	}
	if len(notes) == 0 && len(all) > 0 && !meets(all...) {
		notes = append(notes, d.Errorf(at, "no instance type of %s meets all of them together; loosen one", load.Region).Error())
	}
	return notes
}

// regionHint says where zones of another region come from.
func regionHint(key string, load instancetypes.Catalog) string {
	if !slices.Contains([]string{instancetypes.LabelZone, instancetypes.LabelZoneID, "topology.kubernetes.io/region"}, key) {
		return "; correct it"
	}
	return fmt.Sprintf(": its zones are %s; --types FILE or --catalog-bucket BUCKET takes types and prices of another region",
		strings.Join(slices.Sorted(maps.Keys(load.Zones)), ", "))
}
