package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/cli/convert"
	"joiner.sh/pkg/workload/manifest"
)

const convertHelp = `Convert manifests of older Karpenters to what Joiner and today's Karpenter take, and print them.

Provisioner (karpenter.sh/v1alpha5, with an inline provider or a providerRef), AWSNodeTemplate (karpenter.k8s.aws/v1alpha1), and NodePool
and EC2NodeClass v1beta1 become NodePool and EC2NodeClass v1; all other objects come out as they went in. Defaults that the old versions
had are written out. Each thing without an equivalent is a warning on standard error, with file, line and field. Convert what belongs
together in one go: kubelet settings move from pools into classes.

Exit code 0: converted, maybe with warnings; 2: something cannot be converted, and nothing was printed; 3: with --strict there were warnings,
or documents cannot be read and were left out.`

type convertFlags struct {
	inputs
	output outputForm
	strict bool
	convert.Options
}

func convertCommand(term terminalOutput) *cobra.Command {
	var f convertFlags
	cmd := &cobra.Command{
		Use: "convert -f FILE...", Short: "Convert manifests of older Karpenter versions to the current API",
		Long:    convertHelp,
		Example: "  joiner convert -f provisioners.yaml --cluster prod > nodepools.yaml\n  kubectl get provisioners,awsnodetemplates -o yaml | joiner convert -f - | kubectl apply -f -",
		Args:    noArgs("files are given with -f"),
		RunE:    func(*cobra.Command, []string) error { return runConvert(f, term) },
	}
	f.inputs.addFlags(cmd, "manifests (required)")
	cmd.Flags().StringVar(&f.Cluster, "cluster", "",
		"name of the cluster: the nodes' role is KarpenterNodeRole-<cluster> where the input does not say")
	cmd.Flags().StringVar(&f.Role, "role", "", "name of the nodes' role where the input does not say")
	cmd.Flags().BoolVar(&f.KeepAL2, "keep-al2", false, "leave classes on Amazon Linux 2 instead of AL2023")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "end with 3 if there are warnings")
	outputFlag(cmd, &f.output, "yaml", "json")
	return cmd
}

func runConvert(f convertFlags, term terminalOutput) error {
	if len(f.paths) == 0 {
		return &inputError{errors.New("no file given; name one with -f")}
	}
	var docs []manifest.Document
	broken := 0
	err := term.withProgress("reading "+f.inputs.String(), func() error {
		files, err := f.readAll(term)
		if err == nil {
			docs, broken, err = manifestsOf(files, term)
		}
		return err
	})
	if err != nil {
		return &inputError{err}
	}
	if len(docs) == 0 {
		return &inputError{fmt.Errorf("%s: there is no object", f.inputs.String())}
	}
	r, err := convert.ConvertAll(docs, f.Options)
	if err != nil {
		return &inputError{err}
	}
	v, err := judgeObjects(r.Objects)
	if err != nil {
		return err
	}
	r.Warnings = slices.Concat(r.Warnings, v.dropped, v.refused)
	for _, w := range r.Warnings {
		term.writeMessage("%s %s", term.paintMessage("warning:", warningColour), w)
	}
	if err := writeObjects(term, f.output, r.Objects); err != nil {
		return err
	}
	if f.strict && len(r.Warnings) > 0 {
		return &foundError{fmt.Sprintf("%d warnings", len(r.Warnings))}
	}
	return partlyRead(broken)
}

// writeObjects prints a stream of YAML documents, or one List.
func writeObjects(term terminalOutput, as outputForm, objects []convert.Object) error {
	var bodies []json.RawMessage
	for _, o := range objects {
		b, err := bodyOf(o)
		if err != nil {
			return err
		}
		bodies = append(bodies, b)
	}
	if as.form == "json" {
		return writeJSON(term.out, map[string]any{"apiVersion": "v1", "kind": "List", "items": bodies})
	}
	var out strings.Builder
	for i, b := range bodies {
		if i > 0 {
			out.WriteString("---\n")
		}
		y, err := yaml.JSONToYAML(b)
		if err != nil {
			return fmt.Errorf("write YAML: %w", err)
		}
		out.Write(y)
	}
	return term.writeText(out.String())
}

func bodyOf(o convert.Object) (json.RawMessage, error) {
	var what any = o.Pool
	switch {
	case o.Class != nil:
		what = o.Class
	case o.Pool == nil:
		return o.Other.Body, nil
	}
	b, err := json.Marshal(what)
	if err == nil && o.Pool != nil && o.Class == nil {
		b, err = withPlainLimits(b, o.Pool.Spec.Limits)
	}
	if err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return b, nil
}

// withPlainLimits writes whole numbers as people do: 1000 and not 1k.
func withPlainLimits(pool []byte, limits api.Limits) ([]byte, error) {
	plain := map[corev1.ResourceName]string{}
	for name, q := range limits {
		if plain[name] = q.String(); q.Format == resource.DecimalSI {
			if n, whole := q.AsInt64(); whole {
				plain[name] = strconv.FormatInt(n, 10)
			}
		}
	}
	was, err := json.Marshal(limits)
	if err != nil {
		return nil, err
	}
	now, err := json.Marshal(plain)
	return bytes.Replace(pool, slices.Concat([]byte(`"limits":`), was), slices.Concat([]byte(`"limits":`), now), 1), err
}

// upToDate converts what is of older versions among the documents, with warnings as messages. Refused says why the API
// server would refuse which of the objects, by kind and name. Those that cannot be converted are told and left out;
// broken is how many.
func upToDate(docs []manifest.Document, term terminalOutput) (out []manifest.Document, refused map[string]string,
	broken int, err error) {
	r, err := convert.ConvertAll(docs, convert.Options{})
	if err != nil {
		docs, broken = leaveOut(docs, func(d manifest.Document) error {
			_, err := convert.ConvertAll([]manifest.Document{d}, convert.Options{})
			return err
		}, term)
		if broken == 0 { // they cannot be converted together
			return nil, nil, 0, err
		}
		if r, err = convert.ConvertAll(docs, convert.Options{}); err != nil {
			return nil, nil, broken, err
		}
	}
	v, err := judgeObjects(r.Objects)
	if err != nil {
		return nil, nil, broken, err
	}
	for _, w := range slices.Concat(r.Warnings, v.refused) {
		term.writeMessage("%s %s", term.paintMessage("warning:", warningColour), w)
	}
	for _, o := range r.Objects {
		if !o.Converted() {
			out = append(out, o.Other)
			continue
		}
		b, err := bodyOf(o)
		if err != nil {
			return nil, nil, broken, err
		}
		made, err := o.Source().Remade(b)
		if err != nil {
			return nil, nil, broken, err
		}
		out = append(out, made)
	}
	return out, v.names, broken, nil
}
