package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"joiner.sh/pkg/cli/release"
	"joiner.sh/pkg/settings"
)

const (
	appProgram    = "joiner-cdk" // of a release folder
	functionsHere = "functions"
	cdkFile       = "cdk.json"
	// assemblyFolder is the folder to which the CDK's command line writes as well.
	assemblyFolder = "cdk.out"
)

// releaseFlags say which release is meant and with which settings.
type releaseFlags struct{ folder, cluster, settings string }

func (f *releaseFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.folder, "folder", "", "the unpacked release; without it the folder of this program")
	cmd.Flags().StringVar(&f.cluster, "cluster", "", "name of the EKS cluster; without it the settings say it")
	cmd.Flags().StringVar(&f.settings, "settings", "", "JSON file with an object of settings, beside those of the release's cdk.json")
}

// releaseFolder is an unpacked release whose files are as they were made.
type releaseFolder struct {
	path string // absolute
	sums []release.Checksum
}

// openFolder finds the release and checks every file of it but cdk.json, which belongs to the user.
func (f releaseFlags) openFolder() (releaseFolder, error) {
	path := f.folder
	if path == "" {
		program, err := os.Executable()
		if err == nil {
			program, err = filepath.EvalSymlinks(program)
		}
		if err != nil {
			return releaseFolder{}, fmt.Errorf("find the folder of this program: %w", err)
		}
		path = filepath.Dir(program)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return releaseFolder{}, err
	}
	text, err := os.ReadFile(filepath.Join(path, release.ChecksumFile))
	if errors.Is(err, os.ErrNotExist) {
		return releaseFolder{}, &inputError{fmt.Errorf("%s is no release: unpack joiner-VERSION-OS-ARCH.tar.gz and run the program in it, or name the folder with --folder", path)}
	}
	if err != nil {
		return releaseFolder{}, err
	}
	sums, err := release.ParseChecksums(string(text))
	if err != nil {
		return releaseFolder{}, &inputError{err}
	}
	var found []release.Found
	for _, s := range sums {
		sum, err := fileSum(filepath.Join(path, filepath.FromSlash(s.Name)))
		if err != nil {
			return releaseFolder{}, err
		}
		found = append(found, release.Found{Name: s.Name, SHA256: sum})
	}
	if wrong := release.CompareFiles(sums, found); len(wrong) > 0 {
		return releaseFolder{}, &inputError{fmt.Errorf("check %s: %s: nothing was done; unpack the release again", path, strings.Join(wrong, "; "))}
	}
	return releaseFolder{path, sums}, nil
}

// fileSum is the SHA-256 of a file in hex; empty for one that is not there.
func fileSum(name string) (string, error) {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// appWords are the words that run the CDK app in the folder, with the user's own file of settings.
func (r releaseFolder) appWords(own string) []string {
	words := []string{"./" + appProgram, "-functions", functionsHere}
	if own != "" {
		words = append(words, "-settings", own)
	}
	return words
}

// contextOf is the context that the CDK command line would give the app.
func (r releaseFolder) contextOf(cluster string) (map[string]any, error) {
	text, err := os.ReadFile(filepath.Join(r.path, cdkFile))
	if err != nil {
		return nil, &inputError{fmt.Errorf("read settings: %w: take the file from the release again", err)}
	}
	name := filepath.Join(r.path, cdkFile)
	file, err := settings.DecodeFile(name, text)
	if err != nil {
		return nil, &inputError{err}
	}
	own, ok := file["context"].(map[string]any)
	if !ok { // it may be misspelt, and the CDK would deploy without it
		return nil, &inputError{fmt.Errorf(`read settings of %s: it has no object "context", in which settings stand: write "context": {}`, name)}
	}
	for _, key := range slices.Sorted(maps.Keys(file)) {
		if _, misplaced := settings.FindSetting(key); misplaced {
			return nil, &inputError{fmt.Errorf(`read settings of %s: %s stands beside "context": write it within`, name, key)}
		}
	}
	context := map[string]any{"aws:cdk:enable-path-metadata": true}
	maps.Copy(context, own)
	if cluster != "" {
		context["clusterName"] = cluster
	}
	return context, nil
}

// synthesize runs the CDK app, without the CDK's command line, into a folder, and returns the stacks. What is wrong with
// the settings is the error, in the app's own words.
func (r releaseFolder) synthesize(ctx context.Context, term terminalOutput, f releaseFlags, into string) ([]release.Stack, error) {
	if err := checkNode(ctx); err != nil {
		return nil, err
	}
	values, err := r.contextOf(f.cluster)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	own, err := absoluteFile(f.settings)
	if err != nil {
		return nil, err
	}
	words := r.appWords(own)
	app := exec.CommandContext(ctx, filepath.Join(r.path, words[0]), words[1:]...)
	app.Dir = r.path
	app.Env = append(app.Environ(), "CDK_OUTDIR="+into, "CDK_CONTEXT_JSON="+string(text))
	var said bytes.Buffer
	app.Stdout, app.Stderr = &said, &said
	if err := term.withProgress("make the template", app.Run); err != nil {
		words := strings.Join(ownWords(said.String()), "\n")
		return nil, &inputError{fmt.Errorf("make the template: %s", cmp.Or(words, err.Error()))}
	}
	for _, line := range ownWords(said.String()) { // such as what endpoints cost
		term.writeMessage("%s", line)
	}
	manifest, err := os.ReadFile(filepath.Join(into, "manifest.json"))
	if err != nil {
		return nil, fmt.Errorf("read what the CDK app wrote: %w", err)
	}
	stacks, err := release.ReadStacks(manifest)
	if err == nil && len(stacks) == 0 {
		err = errors.New("read what the CDK app wrote: it has no stack")
	}
	return stacks, err
}

// checkNode refuses a machine without the Node.js that the CDK needs.
func checkNode(ctx context.Context) error {
	said, err := exec.CommandContext(ctx, "node", "--version").Output()
	if errors.Is(err, exec.ErrNotFound) {
		return &inputError{errors.New("the program node is not on the PATH, and the CDK needs it: install Node.js 20 or newer")}
	}
	const oldest = 20
	var major int
	if _, err := fmt.Sscanf(string(said), "v%d.", &major); err == nil && major < oldest {
		return &inputError{fmt.Errorf("the program node on the PATH is %s, too old for the CDK: install Node.js 20 or newer", bytes.TrimSpace(said))}
	}
	return nil
}

// ownWords are the lines that the CDK app wrote itself. The frame of exclamation marks is an advertisement of jsii for
// newer Node.js, and its word about an abnormal exit is a mistake that ends in no newline. Of a file that cannot be
// written only that is kept: what follows is where in the CDK.
func ownWords(said string) []string {
	fileError := regexp.MustCompile(`^panic: Error: (E[A-Z]+: .+)`)
	var out []string
	for line := range strings.Lines(said) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "Runtime process exited abnormally: waitid: no child processes")
		if file := fileError.FindStringSubmatch(line); file != nil {
			return append(out, file[1])
		}
		if line = strings.TrimPrefix(line, "infra: "); line != "" && !strings.HasPrefix(line, "!!") {
			out = append(out, line)
		}
	}
	return out
}

// absoluteFile is the path of a file from everywhere; empty for none.
func absoluteFile(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	if _, err := os.Stat(name); err != nil {
		return "", &inputError{fmt.Errorf("read settings: %w", err)}
	}
	return filepath.Abs(name)
}
