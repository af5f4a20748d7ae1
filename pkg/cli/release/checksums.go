// Package release says what the folder of a release must hold, and turns a template that the CDK wrote into one that
// needs no CDK. Start with ParseChecksums and PlainTemplate.
//
// It knows texts. It refuses to know files, processes and AWS.
package release

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
)

// ChecksumFile has a line for each file of a release folder that nobody is to change, in the form of sha256sum.
const ChecksumFile = "SHA256SUMS"

// Checksum is a file of a release with what its content must be.
type Checksum struct {
	Name   string // below the folder, with slashes
	SHA256 string // in hex
}

// ParseChecksums reads ChecksumFile. A line that is none, or a name that leads out of the folder, is an error: nothing
// is believed of such a file.
func ParseChecksums(text string) ([]Checksum, error) {
	var out []Checksum
	for line := range strings.Lines(text) {
		sum, name, found := strings.Cut(strings.TrimRight(line, "\r\n"), "  ")
		raw, err := hex.DecodeString(sum)
		const bytesOfSHA256 = 32
		if !found || err != nil || len(raw) != bytesOfSHA256 || name == "" || path.IsAbs(name) || path.Clean(name) != name ||
			strings.HasPrefix(name, "..") {
			return nil, fmt.Errorf("read %s: line %d is no checksum and name: %q", ChecksumFile, len(out)+1, line)
		}
		out = append(out, Checksum{name, sum})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read %s: it is empty", ChecksumFile)
	}
	return out, nil
}

// Found is a file as it is on disk; an empty SHA256 is one that is not there.
type Found = Checksum

// CompareFiles says which files are not those of the release, one sentence each; nothing if all are.
func CompareFiles(want []Checksum, found []Found) []string {
	has := map[string]string{}
	for _, f := range found {
		has[f.Name] = f.SHA256
	}
	var out []string
	for _, w := range want {
		switch got := has[w.Name]; got {
		case w.SHA256:
		case "":
			out = append(out, w.Name+" is missing")
		default:
			out = append(out, w.Name+" is not the file of the release: its bytes have changed")
		}
	}
	return out
}

// Stack is a stack of a cloud assembly, which is what the CDK app writes.
type Stack struct {
	Name                     string // of the stack; the artifact's id where the manifest has none
	TemplateFile, AssetsFile string // paths in the cloud assembly
	Account, Region          string // empty: those of the credentials
	BootstrapParameter       string // of SSM, which the CDK's bootstrap leaves
}

// sortStacks sorts by name, and then by where they are.
func sortStacks(all []Stack) {
	slices.SortFunc(all, func(a, b Stack) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Account, b.Account), cmp.Compare(a.Region, b.Region))
	})
}
