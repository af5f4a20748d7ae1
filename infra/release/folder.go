package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"joiner.sh/infra/archive"
	"joiner.sh/pkg/model/version"
)

const (
	appProgram   = "joiner-cdk" // the CDK app
	cdkFile      = "cdk.json"
	schemaFile   = "settings.schema.json"
	licensesFile = "LICENSES.txt"
	sbomFile     = "sbom.cdx.json"
)

// cdkSettings is cdk.json of a release folder: it names the app, and has the schema of the settings, which the user
// writes into it.
const cdkSettings = `{
  "$schema": "./` + schemaFile + `",
  "app": "./` + appProgram + ` -functions functions",
  "context": {}
}
`

// folderName returns the name of the folder in an archive.
func folderName(to platform) string {
	return fmt.Sprintf("%s-%s-%s-%s", commandLine, version.Number, to.os, to.arch)
}

// sharedFiles returns the files of a release folder that are the same on all platforms: functions, and the CDK's input.
func (s source) sharedFiles(functions string) ([]archive.File, error) {
	out := []archive.File{{Name: cdkFile, Mode: 0o644, Content: []byte(cdkSettings)}}
	for name, from := range map[string]string{schemaFile: "infra/" + schemaFile, "terraform/main.tf": "infra/terraform/main.tf",
		"nodepool.yaml": "infra/local/demo/manifests/nodepool-v1.yaml", "release.md": "infra/release.md",
		"settings.md": "infra/settings.md", "CHANGELOG.md": "infra/CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(s.folder, filepath.FromSlash(from)))
		if err != nil {
			return nil, fmt.Errorf("read what goes with the functions: %w", err)
		}
		out = append(out, archive.File{Name: name, Mode: 0o644, Content: text})
	}
	err := filepath.WalkDir(functions, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(filepath.Dir(functions), name)
		out = append(out, archive.File{Name: filepath.ToSlash(below), Mode: 0o644, Content: content})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read functions: %w", err)
	}
	return out, nil
}

// writeFolder writes the archive of a release folder: the files, and checksums of all but cdk.json, into which the user
// writes settings.
func writeFolder(out string, to platform, files []archive.File, report io.Writer) error {
	slices.SortFunc(files, func(a, b archive.File) int { return cmp.Compare(a.Name, b.Name) })
	var sums bytes.Buffer
	for _, f := range files {
		if f.Name != cdkFile {
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.Content), f.Name)
		}
	}
	folder := folderName(to)
	files = append(slices.Clone(files), archive.File{Name: checksumFile, Mode: 0o644, Content: sums.Bytes()})
	for i := range files {
		files[i].Name = path.Join(folder, files[i].Name)
	}
	return writeArchive(filepath.Join(out, folder+".tar.gz"), files, report)
}
