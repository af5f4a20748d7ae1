// Package crdcheck says what the API server would refuse of NodePools, NodeClaims, NodeOverlays and EC2NodeClasses: it
// judges objects by the schemas and rules of the CRDs that are part of this program, with the API server's own library.
//
// It refuses to know where objects come from and what users should write instead.
package crdcheck

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"joiner.sh/pkg/install"
)

// Judge knows the CRDs.
type Judge struct{ kinds map[string]kind }

// kind is one version of a CRD.
type kind struct {
	structural *schema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// NewJudge reads the CRDs. They are part of the program, so an error is a mistake in them.
func NewJudge() (*Judge, error) {
	crds, err := install.CRDs()
	if err != nil {
		return nil, err
	}
	j := &Judge{kinds: map[string]kind{}}
	for _, o := range crds {
		var crd v1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &crd); err != nil {
			return nil, fmt.Errorf("read CRD %s: %w", o.GetName(), err)
		}
		for _, v := range crd.Spec.Versions {
			k, err := newKind(v.Schema.OpenAPIV3Schema)
			if err != nil {
				return nil, fmt.Errorf("read CRD %s %s: %w", crd.Name, v.Name, err)
			}
			j.kinds[crd.Spec.Group+"/"+v.Name+" "+crd.Spec.Names.Kind] = k
		}
	}
	return j, nil
}

func newKind(s *v1.JSONSchemaProps) (k kind, err error) {
	var props apiextensions.JSONSchemaProps
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(s, &props, nil); err != nil {
		return k, fmt.Errorf("convert schema: %w", err)
	}
	if k.structural, err = schema.NewStructural(&props); err != nil {
		return k, fmt.Errorf("read schema: %w", err)
	}
	if k.schema, _, err = validation.NewSchemaValidator(&props); err != nil {
		return k, fmt.Errorf("read schema: %w", err)
	}
	k.rules = cel.NewValidator(k.structural, true, celconfig.PerCallLimit)
	return k, nil
}

// Verdict holds the API server's judgement of an object.
type Verdict struct {
	Refused field.ErrorList // why it is refused, sorted; empty if it is taken
	Unknown []string        // fields that are dropped, sorted
}

// Judge judges an object, given as JSON, as one that is created. An object of a kind that has no CRD here is not
// judged, and known is false.
func (j *Judge) Judge(apiVersion, kindName string, body []byte) (v Verdict, known bool, err error) {
	k, known := j.kinds[apiVersion+" "+kindName]
	if !known {
		return v, false, nil
	}
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		return v, true, fmt.Errorf("read %s: %w", kindName, err)
	}
	object = runtime.DeepCopyJSON(wholeNumbers(object).(map[string]any))
	v.Unknown = pruning.PruneWithOptions(object, k.structural, true,
		schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.Default(object, k.structural)
	v.Refused = validation.ValidateCustomResource(nil, object, k.schema)
	if len(v.Refused) == 0 { // rules are written for objects of the right form
		v.Refused, _ = k.rules.Validate(context.Background(), nil, k.structural, object, nil,
			celconfig.RuntimeCELCostBudget)
	}
	slices.SortFunc(v.Refused, func(a, b *field.Error) int { // properties were looked at in any order
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Error(), b.Error()))
	})
	return v, true, nil
}

// wholeNumbers makes integers of the whole numbers of a JSON value, as the API server's decoder does.
func wholeNumbers(v any) any {
	switch t := v.(type) {
	case map[string]any:
		for k := range t {
			t[k] = wholeNumbers(t[k])
		}
	case []any:
		for i := range t {
			t[i] = wholeNumbers(t[i])
		}
	case float64:
		if t == math.Trunc(t) && math.Abs(t) < 1<<53 {
			return int64(t)
		}
	}
	return v
}
