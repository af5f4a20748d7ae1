package assembly

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// assets maps the object key that a template names to the file or folder in the assembly.
type assets map[string]string

// assetManifest is the part of *.assets.json that is read.
type assetManifest struct {
	Files map[string]struct {
		Source struct {
			Path string `json:"path"`
		} `json:"source"`
		Destinations map[string]struct {
			ObjectKey string `json:"objectKey"`
		} `json:"destinations"`
	} `json:"files"`
}

// readAssets collects all asset manifests of a folder. Templates are assets too; they do no harm here.
func readAssets(dir string) (assets, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.assets.json"))
	if err != nil {
		return nil, fmt.Errorf("list asset manifests: %w", err)
	}
	found := assets{}
	for _, file := range files {
		var m assetManifest
		if err := readJSON(file, &m); err != nil {
			return nil, err
		}
		for _, hash := range sortedKeys(m.Files) {
			asset := m.Files[hash]
			if asset.Source.Path == "" {
				continue
			}
			path := asset.Source.Path
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			for _, destination := range asset.Destinations {
				found[destination.ObjectKey] = path
			}
		}
	}
	return found, nil
}

// codePath returns the existing file or folder of an asset, as an absolute path: a function runs inside it.
func (a assets) codePath(key string) (string, error) {
	path, ok := a[key]
	if !ok {
		return "", fmt.Errorf("find code %q: no asset manifest has it", key)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find code: %w", err)
	}
	return filepath.Abs(path)
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
