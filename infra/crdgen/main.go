// Command crdgen writes the deep copies in pkg/api and the CRDs in pkg/install: what controller-gen makes of the types,
// and for the CRDs the rules that its markers cannot say (see refine.go). `make crds` runs it from the top of the
// repository; the test beside it finds files that are out of date.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	autoscalingv1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
)

const banner = "# Made by `make crds` from the types in pkg/api. Do not edit.\n"

func main() {
	root := flag.String("root", ".", "top of the repository")
	out := flag.String("out", "pkg/install", "directory to write to")
	flag.Parse()
	if err := runTool(*root, "object", "paths=./pkg/api/..."); err != nil {
		log.Fatalf("crdgen: %v", err)
	}
	if err := generate(*root, *out); err != nil {
		log.Fatalf("crdgen: %v", err)
	}
}

// toolIn returns the path at which `make crds` installs controller-gen.
func toolIn(root string) string {
	return filepath.Join(root, ".local", "bin", "controller-gen")
}

// generate writes the CRDs into folders of out, one file per kind: our own into crds, another project's into borrowed.
func generate(root, out string) error {
	raw, err := os.MkdirTemp("", "crdgen")
	if err != nil {
		return err
	}
	defer os.RemoveAll(raw)
	if err := runTool(root, "crd", "paths=./pkg/api/...", "output:crd:dir="+raw); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(raw, "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("controller-gen wrote nothing into %s: %w", raw, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if text, err = refineText(text); err != nil {
			return fmt.Errorf("refine %s: %w", filepath.Base(f), err)
		}
		dir := filepath.Join(out, folderOf(filepath.Base(f)))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(f)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// folderOf tells our own CRDs, which pkg/install keeps up to date in a cluster, from those that belong to somebody
// else.
func folderOf(file string) string {
	if strings.HasPrefix(file, autoscalingv1beta1.Group) {
		return "borrowed"
	}
	return "crds"
}

// runTool runs controller-gen at the top of the repository.
func runTool(root string, args ...string) error {
	tool, err := filepath.Abs(toolIn(root))
	if err != nil {
		return err
	}
	if _, err := os.Stat(tool); err != nil {
		return fmt.Errorf("find controller-gen: %w; run `make crds`, which installs it", err)
	}
	cmd := exec.Command(tool, args...)
	cmd.Dir = root
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run controller-gen: %w: %s", err, strings.TrimSpace(string(said)))
	}
	return nil
}

func refineText(text []byte) ([]byte, error) {
	var crd map[string]any
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return nil, err
	}
	if err := refine(crd); err != nil {
		return nil, err
	}
	body, err := yaml.Marshal(crd)
	return append([]byte(banner), body...), err
}
