package main

import (
	"bytes"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"joiner.sh/pkg/model/version"
)

// describeContents returns an SBOM in the form of CycloneDX: the programs, the modules that each links, what these
// link, and their licenses. It has neither a time nor a serial number, so that it is the same for the same commit.
func (s source) describeContents(licenses licenseList) ([]byte, error) {
	names, err := s.functionNames()
	if err != nil {
		return nil, err
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		BOMRef: s.module, Type: cdx.ComponentTypeApplication, Name: "joiner", Version: version.Number,
		PackageURL: moduleURL(s.module, "v"+version.Number), Licenses: licenseChoices([]string{"Apache-2.0"}),
	}}
	toolchain := cdx.Component{BOMRef: "std", Type: cdx.ComponentTypeLibrary, Name: "std",
		Version: strings.TrimPrefix(runtime.Version(), "go"), Licenses: licenseChoices([]string{"BSD-3-Clause"})}
	toolchain.PackageURL = moduleURL("std", toolchain.Version)
	packages, err := s.listLinked("functions/...", "infra")
	if err != nil {
		return nil, err
	}
	programs, components := []cdx.Component{}, []cdx.Component{toolchain}
	edges := map[string]map[string]bool{}
	folders := map[string]string{appProgram: "infra"}
	for _, name := range append(names, commandLine) {
		folders[name] = "functions/" + name
	}
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		ref := folders[name]
		addEdge(edges, s.module, ref)
		addEdge(edges, ref, "std")
		addModuleEdges(edges, ref, linkedBy(s.module+"/"+ref, packages))
		programs = append(programs, cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeApplication, Name: name,
			Version: version.Number, Licenses: licenseChoices([]string{"Apache-2.0"})})
	}
	for _, m := range licenses {
		if edges[m.Path] == nil {
			continue // of the package for CDK apps alone, which is handed out as source
		}
		components = append(components, cdx.Component{BOMRef: m.Path, Type: cdx.ComponentTypeLibrary, Name: m.Path,
			Version: m.Version, PackageURL: moduleURL(m.Path, m.Version), Licenses: licenseChoices(m.spdx)})
	}
	components = append(programs, components...)
	bom.Components = &components
	bom.Dependencies = listDependencies(edges)
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return nil, fmt.Errorf("encode SBOM: %w", err)
	}
	return out.Bytes(), nil
}

// linkedBy returns the packages that a program is made of.
func linkedBy(program string, packages []linked) []linked {
	byPath := map[string]linked{}
	for _, p := range packages {
		byPath[p.ImportPath] = p
	}
	reached, next := map[string]bool{program: true}, []string{program}
	var out []linked
	for len(next) > 0 {
		p := byPath[next[0]]
		next = next[1:]
		out = append(out, p)
		for _, imported := range p.Imports {
			if !reached[imported] {
				reached[imported] = true
				next = append(next, imported)
			}
		}
	}
	return out
}

// addModuleEdges adds which module of a program imports which. What Joiner's own packages import the program does.
func addModuleEdges(edges map[string]map[string]bool, program string, packages []linked) {
	owner := map[string]string{} // by package
	for _, p := range packages {
		switch {
		case p.Standard || p.Module == nil:
		case p.Module.Main:
			owner[p.ImportPath] = program
		default:
			owner[p.ImportPath] = p.Module.Path
			addEdge(edges, p.Module.Path, "std")
		}
	}
	for _, p := range packages {
		from := owner[p.ImportPath]
		for _, imported := range p.Imports {
			if to := owner[imported]; from != "" && to != "" && from != to {
				addEdge(edges, from, to)
			}
		}
	}
}

func addEdge(edges map[string]map[string]bool, from, to string) {
	if edges[from] == nil {
		edges[from] = map[string]bool{}
	}
	edges[from][to] = true
}

func listDependencies(edges map[string]map[string]bool) *[]cdx.Dependency {
	var out []cdx.Dependency
	for _, from := range slices.Sorted(maps.Keys(edges)) {
		to := slices.Sorted(maps.Keys(edges[from]))
		out = append(out, cdx.Dependency{Ref: from, Dependencies: &to})
	}
	return &out
}

func licenseChoices(spdx []string) *cdx.Licenses {
	var out cdx.Licenses
	for _, id := range spdx {
		out = append(out, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &out
}

// moduleURL is the package URL of a Go module.
func moduleURL(path, v string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(v, "+", "%2B")
}
