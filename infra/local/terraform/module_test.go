// Package terraform_test evaluates the Terraform module of a release with HCL's own library, which nothing else needs.
package terraform_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// assetList is what joiner template writes, and the only thing that the module reads.
const assetList = `{"version": "1", "stack": "joiner-prod", "bucket": "code", "templateKey": "joiner/joiner-prod-abc.template.json",
 "files": [{"key": "joiner/h1.zip", "function": "joiner-prod-provision", "path": "functions/arm64/provision.zip", "sha256": "aa"},
           {"key": "joiner/h2.zip", "function": "joiner-prod-setup", "path": "functions/arm64/setup.zip", "sha256": "bb"}]}`

// body is the module, read.
func body(t *testing.T) *hclsyntax.Body {
	t.Helper()
	file, problems := hclparse.NewParser().ParseHCLFile("../../terraform/main.tf")
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return file.Body.(*hclsyntax.Body)
}

// eachBlock hands over the blocks of a type by their last label.
func eachBlock(b *hclsyntax.Body, kind string) map[string]*hclsyntax.Block {
	out := map[string]*hclsyntax.Block{}
	for _, block := range b.Blocks {
		if block.Type != kind {
			continue
		}
		name := ""
		if n := len(block.Labels); n > 0 {
			name = block.Labels[n-1]
		}
		out[name] = block
	}
	return out
}

// world is what expressions of the module see when the folders are given.
type world struct {
	t       *testing.T
	context *hcl.EvalContext
}

func newWorld(t *testing.T, b *hclsyntax.Body, given map[string]string) *world {
	t.Helper()
	text := func(with func(string) (string, error)) function.Function {
		return function.New(&function.Spec{Params: []function.Parameter{{Name: "path", Type: cty.String}}, Type: function.StaticReturnType(cty.String),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				out, err := with(args[0].AsString())
				return cty.StringVal(out), err
			}})
	}
	read := func(name string) (string, error) { b, err := os.ReadFile(name); return string(b), err }
	w := &world{t: t, context: &hcl.EvalContext{Variables: map[string]cty.Value{}, Functions: map[string]function.Function{
		"file": text(read),
		"filesha256": text(func(name string) (string, error) {
			b, err := read(name)
			return fmt.Sprintf("%x", sha256.Sum256([]byte(b))), err
		}),
		"jsondecode": function.New(&function.Spec{Params: []function.Parameter{{Name: "text", Type: cty.String}}, Type: function.StaticReturnType(cty.DynamicPseudoType),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				kind, err := ctyjson.ImpliedType([]byte(args[0].AsString()))
				if err != nil {
					return cty.DynamicVal, err
				}
				return ctyjson.Unmarshal([]byte(args[0].AsString()), kind)
			}}),
	}}}
	variables := map[string]cty.Value{}
	for name, block := range eachBlock(b, "variable") {
		if value, set := given[name]; set {
			variables[name] = cty.StringVal(value)
		} else if block.Body.Attributes["default"] != nil {
			variables[name] = w.value(block.Body, "default")
		} else {
			t.Fatalf("variable %s has no default, and the test gives none", name)
		}
	}
	w.context.Variables["var"] = cty.ObjectVal(variables)
	locals := map[string]cty.Value{}
	for name := range eachBlock(b, "locals")[""].Body.Attributes {
		locals[name] = w.value(eachBlock(b, "locals")[""].Body, name)
	}
	w.context.Variables["local"] = cty.ObjectVal(locals)
	w.context.Variables["data"] = cty.ObjectVal(map[string]cty.Value{"aws_s3_bucket": cty.ObjectVal(map[string]cty.Value{"assets": cty.ObjectVal(map[string]cty.Value{
		"bucket_regional_domain_name": cty.StringVal("code.s3.eu-west-1.amazonaws.com")})})})
	return w
}

// value is an attribute of a block, evaluated.
func (w *world) value(b *hclsyntax.Body, name string) cty.Value {
	w.t.Helper()
	a := b.Attributes[name]
	if a == nil {
		w.t.Fatalf("%v: there is no %s", b.SrcRange, name)
	}
	v, problems := a.Expr.Value(w.context)
	if problems.HasErrors() {
		w.t.Fatal(problems)
	}
	return v
}

// generated is a folder with what joiner template writes.
func generated(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"joiner-prod.assets.json": assetList, "joiner-prod.template.json": "{}"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// Each zip goes where the template expects it, the template to a place named after its content, and the stack is made
// from there.
func TestTheModuleUploadsAndMakesTheStack(t *testing.T) {
	b := body(t)
	w := newWorld(t, b, map[string]string{"stack": "joiner-prod", "release": "/opt/joiner", "generated": generated(t)})
	resources := eachBlock(b, "resource")
	functions := w.value(resources["function"].Body, "for_each").AsValueMap()
	if len(functions) != 2 {
		t.Errorf("%d zips, want 2", len(functions))
	}
	w.context.Variables["each"] = cty.ObjectVal(map[string]cty.Value{"value": functions["joiner/h2.zip"]})
	for name, want := range map[string]string{"bucket": "code", "key": "joiner/h2.zip", "source": "/opt/joiner/functions/arm64/setup.zip", "source_hash": "bb"} {
		if got := w.value(resources["function"].Body, name).AsString(); got != want {
			t.Errorf("%s of a zip is %s, want %s", name, got, want)
		}
	}
	key := w.value(resources["template"].Body, "key")
	if key.AsString() != "joiner/joiner-prod-abc.template.json" || w.value(resources["template"].Body, "source_hash").AsString() != fmt.Sprintf("%x", sha256.Sum256([]byte("{}"))) {
		t.Errorf("the template goes to %s", key.AsString())
	}
	w.context.Variables["aws_s3_object"] = cty.ObjectVal(map[string]cty.Value{"template": cty.ObjectVal(map[string]cty.Value{"key": key})})
	stack := resources["joiner"].Body
	for name, want := range map[string]string{"name": "joiner-prod", "template_url": "https://code.s3.eu-west-1.amazonaws.com/joiner/joiner-prod-abc.template.json"} {
		if got := w.value(stack, name).AsString(); got != want {
			t.Errorf("%s of the stack is %s, want %s", name, got, want)
		}
	}
	if got := w.value(stack, "capabilities").AsValueSlice(); len(got) != 1 || got[0].AsString() != "CAPABILITY_NAMED_IAM" {
		t.Errorf("capabilities %v", got)
	}
	// What the stack may roll back to is deleted after its update.
	for _, name := range []string{"function", "template"} {
		if kept := eachBlock(resources[name].Body, "lifecycle")[""]; kept == nil || !w.value(kept.Body, "create_before_destroy").True() {
			t.Errorf("the %s of the release before is deleted before the stack is updated", name)
		}
	}
	// The zips are there before the stack.
	if waits := stack.Attributes["depends_on"].Expr.Variables(); len(waits) != 1 || waits[0].RootName() != "aws_s3_object" {
		t.Errorf("the stack waits for %d things, want the zips", len(waits))
	}
}

// Variables are described and typed, and the outputs are outputs of the template.
func TestVariablesAndOutputs(t *testing.T) {
	b := body(t)
	text, err := os.ReadFile(filepath.Join("..", "..", "stack", "stack.go"))
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, m := range regexp.MustCompile(`addOutput\("(\w+)"`).FindAllSubmatch(text, -1) {
		has[string(m[1])] = true
	}
	w := newWorld(t, b, map[string]string{"stack": "joiner-prod", "release": ".", "generated": generated(t)})
	outputs := map[string]cty.Value{}
	for name := range has {
		outputs[name] = cty.StringVal("the " + name)
	}
	w.context.Variables["aws_cloudformation_stack"] = cty.ObjectVal(map[string]cty.Value{"joiner": cty.ObjectVal(map[string]cty.Value{"outputs": cty.MapVal(outputs)})})
	want := map[string]string{"version": "the Version", "node_role_arn": "the NodeRoleArn", "catalog_bucket": "the CatalogBucket"}
	got := eachBlock(b, "output")
	if len(got) != len(want) {
		t.Errorf("%d outputs, want %d", len(got), len(want))
	}
	for name, value := range want {
		if got := w.value(got[name].Body, "value").AsString(); got != value {
			t.Errorf("output %s is %s, want %s", name, got, value)
		}
	}
	for _, kind := range []string{"variable", "output"} {
		for name, block := range eachBlock(b, kind) {
			if d := w.value(block.Body, "description").AsString(); !strings.HasSuffix(d, ".") {
				t.Errorf("%s %s is described as %q", kind, name, d)
			}
		}
	}
}

// The list in this test has the fields that the command line writes.
func TestTheListIsThatOfTheCommandLine(t *testing.T) {
	text := ""
	for _, name := range []string{"../../../pkg/cli/template.go", "../../../pkg/cli/release/template.go"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	var list map[string]any
	if err := json.Unmarshal([]byte(assetList), &list); err != nil {
		t.Fatal(err)
	}
	for _, fields := range []map[string]any{list, list["files"].([]any)[0].(map[string]any)} {
		for name := range fields {
			if !strings.Contains(text, "`json:\""+name+"\"`") {
				t.Errorf("joiner template writes no %s", name)
			}
		}
	}
}
