package main

import (
	"fmt"
	"strings"

	awsv1 "joiner.sh/pkg/api/aws/v1"
)

const (
	labelValue    = `^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	qualifiedName = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	number        = `(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))`
	quantity      = `(\+|-)?` + number + `(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?` + number + `))?`
	percentage    = `([0-9]{1,2}(\.[0-9]{1,2})?|100(\.0{1,2})?)%`
)

// refine adds to a CRD what markers cannot say: rules inside types that belong to Kubernetes (taints, conditions),
// rules on the values of maps, and the keys of the AWS label domain, which pkg/api/v1 does not know.
func refine(crd map[string]any) error {
	spec, err := schemaOf(crd)
	if err != nil {
		return err
	}
	r := &refiner{root: spec}
	switch kind := crdKind(crd); kind {
	case "NodePool":
		r.labels("spec.template.metadata.labels")
		r.node("spec.template.spec")
	case "NodeClaim":
		r.node("spec")
		r.looseConditions("status.conditions")
	case "EC2NodeClass":
		for _, field := range []string{"evictionHard", "evictionSoft"} {
			r.set("spec.kubelet."+field+"{}", "pattern", "^("+percentage+"|"+quantity+")$")
		}
	case "NodeOverlay":
		r.set("spec.requirements[].key", "pattern", qualifiedName)
		r.rule("spec.requirements[].key", awsKey("self"), awsKeyMessage)
	case "NodeRollout": // its markers say all
	case "CapacityBuffer": // another project's: no rules of ours
	default:
		return fmt.Errorf("no rules for kind %q", kind)
	}
	return r.err
}

// refiner changes one schema and keeps the first error: a path that is gone means that the types changed under the
// rules.
type refiner struct {
	root map[string]any
	err  error
}

// labels has the rules of a template's labels.
func (r *refiner) labels(path string) {
	r.set(path+"{}", "maxLength", 63)
	r.set(path+"{}", "pattern", labelValue)
	r.rule(path, "self.all(x, "+awsKey("x")+")", awsKeyMessage)
}

// node has the rules that the specs of NodePool templates and NodeClaims share.
func (r *refiner) node(path string) {
	for _, field := range []string{".taints", ".startupTaints"} {
		r.set(path+field+"[].key", "minLength", 1)
		r.set(path+field+"[].key", "pattern", qualifiedName)
		r.set(path+field+"[].value", "pattern", qualifiedName)
		r.set(path+field+"[].effect", "enum", []any{"NoSchedule", "PreferNoSchedule", "NoExecute"})
	}
	r.rule(path+".requirements[].key", awsKey("self"), awsKeyMessage)
}

// looseConditions lets a condition be without reason and message, as Karpenter's NodeClaims may be.
func (r *refiner) looseConditions(path string) {
	r.set(path+"[]", "required", []any{"lastTransitionTime", "status", "type"})
	r.set(path+"[].reason", "pattern", `^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?)?$`)
	if reason := r.schemaAt(path + "[].reason"); reason != nil {
		delete(reason, "minLength")
	}
}

const awsKeyMessage = `label domain "` + awsv1.Group + `" is restricted`

func awsKey(variable string) string {
	quoted := make([]string, 0, len(awsv1.WellKnownLabels()))
	for _, l := range awsv1.WellKnownLabels() {
		quoted = append(quoted, "'"+l+"'")
	}
	return fmt.Sprintf("%s in [%s] || !%s.find('^([^/]+)').endsWith('%s')", variable, strings.Join(quoted, ", "),
		variable, awsv1.Group)
}

func (r *refiner) set(path, key string, value any) {
	if s := r.schemaAt(path); s != nil {
		s[key] = value
	}
}

func (r *refiner) rule(path, rule, message string) {
	if s := r.schemaAt(path); s != nil {
		rules, _ := s["x-kubernetes-validations"].([]any)
		s["x-kubernetes-validations"] = append(rules, map[string]any{"rule": rule, "message": message})
	}
}

// schemaAt finds the schema of a field: a dot steps into a property, [] into the items of a list, {} into the values of
// a map.
func (r *refiner) schemaAt(path string) map[string]any {
	steps := strings.NewReplacer("[]", ".[]", "{}", ".{}").Replace(path)
	here := r.root
	for _, step := range strings.Split(steps, ".") {
		var next any
		switch step {
		case "[]":
			next = here["items"]
		case "{}":
			next = here["additionalProperties"]
		default:
			properties, _ := here["properties"].(map[string]any)
			next = properties[step]
		}
		schema, ok := next.(map[string]any)
		if !ok {
			if r.err == nil {
				r.err = fmt.Errorf("no %q on the way to %s", step, path)
			}
			return nil
		}
		here = schema
	}
	return here
}

func crdKind(crd map[string]any) string {
	spec, _ := crd["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	kind, _ := names["kind"].(string)
	return kind
}

// schemaOf is the schema of the CRD's one version.
func schemaOf(crd map[string]any) (map[string]any, error) {
	spec, _ := crd["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	if len(versions) != 1 {
		return nil, fmt.Errorf("%d versions instead of one", len(versions))
	}
	version, _ := versions[0].(map[string]any)
	schema, _ := version["schema"].(map[string]any)
	root, ok := schema["openAPIV3Schema"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("version without a schema")
	}
	return root, nil
}
