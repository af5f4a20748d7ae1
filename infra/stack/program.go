package stack

import (
	"archive/zip"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3assets"
	"github.com/aws/jsii-runtime-go"
)

// builtFolder is the folder where make package leaves the functions.
const builtFolder = ".local/dist"

// bootstrapName is Lambda's name of the program of a function.
const bootstrapName = "bootstrap"

// program is the compiled code of a function.
type program struct {
	path string // a folder with bootstrap in it, or a zip
	sum  string // SHA-256 of bootstrap, in hex
}

// findProgram returns the program of one function for the architecture of the stack: a folder with bootstrap in it, or
// else a zip.
func (p Props) findProgram(function string) (program, error) {
	goarch := "arm64"
	if p.Stack.Architecture == "x86_64" {
		goarch = "amd64"
	}
	folder := filepath.Join(cmp.Or(p.DistFolder, builtFolder), goarch, function)
	bootstrap := filepath.Join(folder, bootstrapName)
	f, err := os.Open(bootstrap)
	if err == nil {
		defer f.Close()
		return newProgram(folder, f)
	}
	if zip := folder + ".zip"; isFile(zip) {
		return zippedProgram(zip)
	}
	return program{}, fmt.Errorf("find function binary %s: build it first (make package for arm64, make build for x86_64; "+
		"the context key architecture says for which; release.md has CDK apps of your own): %w",
		bootstrap, err)
}

func zippedProgram(path string) (program, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return program{}, fmt.Errorf("read function %s: %w: take the file from the release again", path, err)
	}
	defer func() { _ = z.Close() }() // it was only read
	f, err := z.Open(bootstrapName)
	if err != nil {
		return program{}, fmt.Errorf("read function %s: %w: take the file from the release again", path, err)
	}
	defer func() { _ = f.Close() }()
	return newProgram(path, f)
}

func newProgram(path string, bootstrap io.Reader) (program, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, bootstrap); err != nil {
		return program{}, fmt.Errorf("read function %s: %w", path, err)
	}
	return program{path: path, sum: hex.EncodeToString(sum.Sum(nil))}, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// code is the asset of the program. Its hash is that of what runs, not of how it is packed: the template is the same
// from the folders of a checkout and from the zips of a release.
func (p program) code() awslambda.Code {
	return awslambda.Code_FromAsset(&p.path, &awss3assets.AssetOptions{
		AssetHash: &p.sum, AssetHashType: awscdk.AssetHashType_CUSTOM,
	})
}

// AppProps are the properties of an app whose templates depend on settings and programs alone: not on the flags of the
// CDK command line, and not on where the programs lie.
func AppProps() *awscdk.AppProps {
	return &awscdk.AppProps{AnalyticsReporting: jsii.Bool(false),
		PostCliContext: &map[string]any{"aws:cdk:enable-asset-metadata": false}}
}
