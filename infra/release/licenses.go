package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// mayUse are the licenses, by SPDX name, of what may be handed out under the Apache License 2.0 together with their
// texts.
func mayUse() []string {
	return []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "Unlicense", "Zlib"}
}

// leastCoverage is the part of a license file, in percent, that must be the words of known licenses.
const leastCoverage = 75

// isSummary reports that the file tells about the licenses beside it and is none.
func isSummary(modulePath, file string) bool {
	return modulePath == "github.com/aws/aws-lambda-go" && file == "LICENSE-SUMMARY"
}

// licensedModule is a module with the license files of all that is linked of it.
type licensedModule struct {
	module
	spdx  []string      // names, sorted
	files []licenseFile // with the notices that the Apache License 2.0 wants to be handed on
}

type licenseFile struct {
	name string // below the module
	text []byte
}

// licenseList has the modules by path, without our own.
type licenseList []licensedModule

// all returns the texts of all licenses, to go with what contains the modules.
func (l licenseList) all() []byte {
	var b bytes.Buffer
	b.WriteString("What this contains besides Joiner itself, and its licenses.\n")
	for _, m := range l {
		for _, f := range m.files {
			fmt.Fprintf(&b, "\n%s\n%s %s: %s\n%s\n\n%s\n", strings.Repeat("=", 80), m.Path, m.Version, f.name,
				strings.Repeat("=", 80), bytes.TrimSpace(f.text))
		}
	}
	return b.Bytes()
}

// listLicenses finds the licenses of every module that the programs and the stack link, and prints them as a table. The
// error names every module whose license is unknown or may not be used.
func listLicenses(s source, report io.Writer) (licenseList, error) {
	packages, err := s.listLinked("functions/...", "infra", "infra/joiner")
	if err != nil {
		return nil, err
	}
	list, err := readLicenses(packages)
	for _, m := range list {
		fmt.Fprintf(report, "%-28s %s %s\n", strings.Join(m.spdx, ", "), m.Path, m.Version)
	}
	return list, err
}

func readLicenses(packages []linked) (licenseList, error) {
	byPath := map[string]*licensedModule{}
	folders := map[string]bool{}
	for _, p := range packages {
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		m := byPath[p.Module.Path]
		if m == nil {
			m = &licensedModule{module: *p.Module}
			byPath[m.Path] = m
		}
		for folder := p.Dir; !folders[folder]; folder = filepath.Dir(folder) {
			folders[folder] = true
			files, err := readLicenseFiles(m.Dir, folder)
			if err != nil {
				return nil, err
			}
			m.files = append(m.files, files...)
			if folder == m.Dir {
				break
			}
		}
	}
	var out licenseList
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(byPath)) {
		m := byPath[name]
		slices.SortFunc(m.files, func(a, b licenseFile) int { return strings.Compare(a.name, b.name) })
		problems = append(problems, m.classify())
		out = append(out, *m)
	}
	return out, errors.Join(problems...)
}

// readLicenseFiles returns the license files of a folder of the module.
func readLicenseFiles(root, folder string) ([]licenseFile, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("look for licenses: %w", err)
	}
	named := regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice)([-._].*)?$`)
	var out []licenseFile
	for _, e := range entries {
		if e.IsDir() || !named.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		file := filepath.Join(folder, e.Name())
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read license: %w", err)
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return nil, fmt.Errorf("read license: %w", err)
		}
		out = append(out, licenseFile{filepath.ToSlash(name), text})
	}
	return out, nil
}

func isNotice(file string) bool { return strings.HasPrefix(strings.ToLower(path.Base(file)), "notice") }

// classify names the licenses of the files. The error names the module and every file that is in the way.
func (m *licensedModule) classify() error {
	var problems []error
	licenses := 0
	for _, f := range m.files {
		if isNotice(f.name) || isSummary(m.Path, f.name) {
			continue
		}
		licenses++
		c := licensecheck.Scan(f.text)
		if c.Percent < leastCoverage {
			problems = append(problems, fmt.Errorf("module %s %s: %s is no known license: %.0f %% of its words are",
				m.Path, m.Version, f.name, c.Percent))
			continue
		}
		for _, match := range c.Match {
			if match.IsURL {
				continue
			}
			if !slices.Contains(mayUse(), match.ID) {
				problems = append(problems, fmt.Errorf("module %s %s: %s has the license %s, which may not be used; "+
					"allowed are %s", m.Path, m.Version, f.name, match.ID, strings.Join(mayUse(), ", ")))
			}
			m.spdx = append(m.spdx, match.ID)
		}
	}
	if licenses == 0 {
		problems = append(problems, fmt.Errorf("module %s %s: it has no license file", m.Path, m.Version))
	}
	slices.Sort(m.spdx)
	m.spdx = slices.Compact(m.spdx)
	return errors.Join(problems...)
}
