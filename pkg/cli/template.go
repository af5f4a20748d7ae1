package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/spf13/cobra"

	"joiner.sh/pkg/cli/release"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/version"
)

// templateFlags are the flags of `joiner template`.
type templateFlags struct {
	releaseFlags
	assets, out string
	upload      bool
}

const templateHelp = `Write the CloudFormation template of a cluster for pipelines without the CDK: it needs no bootstrap, and takes the functions from your
bucket. It has the same resources by the same names as a deployment with the CDK, so that a stack may be updated by either.

Two files are written: joiner-CLUSTER.template.json, and joiner-CLUSTER.assets.json, which lists the zips with the keys that the template
expects. --upload puts the zips and then the template into the bucket; what is there already is not sent again.`

func templateCommand(term terminalOutput) *cobra.Command {
	var f templateFlags
	cmd := &cobra.Command{
		Use: "template", Short: "Write a CloudFormation template that needs no CDK", Long: templateHelp,
		Args:    noArgs("name the settings with --settings, and the bucket with --assets"),
		Example: "  ./joiner template --settings joiner.json --assets s3://my-bucket/joiner --upload\n  ./joiner template --cluster prod --assets s3://my-bucket/joiner --out generated",
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.runTemplate(cmd.Context(), term) },
	}
	f.addFlags(cmd)
	cmd.Flags().StringVar(&f.assets, "assets", "", "where the zips will be, s3://BUCKET/PREFIX, in the region of the stack")
	cmd.Flags().StringVar(&f.out, "out", ".", "folder for the two files")
	cmd.Flags().BoolVar(&f.upload, "upload", false, "put the zips and the template there")
	return cmd
}

// assetList tells a pipeline of the files beside a template.
type assetList struct {
	Version  string      `json:"version"`
	Stack    string      `json:"stack"`
	Region   string      `json:"region,omitempty"`
	Bucket   string      `json:"bucket"`
	Template string      `json:"templateKey"`
	Files    []assetFile `json:"files"`
}

// assetFile is a zip of the release with its key in the bucket.
type assetFile struct {
	release.Upload
	Path   string `json:"path"` // below the folder of the release
	SHA256 string `json:"sha256"`
}

func (f templateFlags) runTemplate(ctx context.Context, term terminalOutput) error {
	at, err := release.ParseLocation(f.assets)
	if err != nil {
		return &inputError{fmt.Errorf("--assets: %w", err)}
	}
	folder, err := f.openFolder()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "joiner-template-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	stacks, err := folder.synthesize(ctx, term, f.releaseFlags, scratch)
	if err != nil {
		return err
	}
	if len(stacks) > 1 {
		names := lists.Of(stacks, func(s release.Stack) string { return s.Name })
		return &inputError{fmt.Errorf("the settings have several clusters, and a template is for one: name it with --cluster (stacks: %s)", strings.Join(names, ", "))}
	}
	text, list, err := folder.plainTemplate(scratch, stacks[0], at)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return fmt.Errorf("make folder of --out: %w", err)
	}
	if f.upload {
		if err := uploadRelease(ctx, term, folder, text, list); err != nil {
			return err
		}
	}
	return f.writeFiles(term, text, list)
}

// plainTemplate turns what the CDK app wrote into the two files.
func (r releaseFolder) plainTemplate(written string, s release.Stack, at release.Location) ([]byte, assetList, error) {
	list := assetList{Version: version.Number, Stack: s.Name, Region: s.Region, Bucket: at.Bucket}
	template, err := os.ReadFile(filepath.Join(written, s.TemplateFile))
	if err != nil {
		return nil, list, fmt.Errorf("read what the CDK app wrote: %w", err)
	}
	assets, err := os.ReadFile(filepath.Join(written, s.AssetsFile))
	if err != nil {
		return nil, list, fmt.Errorf("read what the CDK app wrote: %w", err)
	}
	files, err := release.ReadAssets(assets)
	if err != nil {
		return nil, list, err
	}
	text, uploads, err := release.PlainTemplate(template, files, at)
	if err != nil {
		return nil, list, err
	}
	const bytesOfKey = 6 // a changed template has another address
	sum := sha256.Sum256(text)
	list.Template = at.Key(fmt.Sprintf("%s-%x.template.json", s.Name, sum[:bytesOfKey]))
	names := map[string]string{} // by checksum
	for _, sum := range r.sums {
		names[sum.SHA256] = sum.Name
	}
	for _, u := range uploads {
		sum, err := fileSum(filepath.Join(written, u.Asset))
		if err != nil {
			return nil, list, err
		}
		if names[sum] == "" {
			return nil, list, fmt.Errorf("find the code of %s in %s: it is no file of the release", u.Function, r.path)
		}
		list.Files = append(list.Files, assetFile{u, names[sum], sum})
	}
	return text, list, nil
}

// writeFiles writes the two files, and prints their names.
func (f templateFlags) writeFiles(term terminalOutput, template []byte, list assetList) error {
	text, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		return err
	}
	for ending, content := range map[string][]byte{".template.json": template, ".assets.json": append(text, '\n')} {
		if err := os.WriteFile(filepath.Join(f.out, list.Stack+ending), content, 0o644); err != nil {
			return fmt.Errorf("write template: %w", err)
		}
	}
	name := filepath.Join(f.out, list.Stack)
	return term.writeText(name + ".template.json\n" + name + ".assets.json\n")
}

// uploadRelease puts into the bucket what is not there yet: the zips, and last the template, which nobody can deploy
// before everything that it names is there. Repeating it goes on where it stopped.
func uploadRelease(ctx context.Context, term terminalOutput, folder releaseFolder, template []byte, list assetList) error {
	cfg, err := loadAWSConfig(ctx)
	if err != nil {
		return fmt.Errorf("load aws configuration: %w", err)
	}
	cfg.Region = cmp.Or(list.Region, cfg.Region)
	if cfg.Region == "" {
		return &inputError{errors.New("no region is known: set AWS_REGION, or region in the settings")}
	}
	b := s3Bucket{s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = cfg.BaseEndpoint != nil }), list.Bucket}
	if err := b.checkRegion(ctx, cfg.Region); err != nil {
		return err
	}
	for i, file := range list.Files {
		content, err := os.ReadFile(filepath.Join(folder.path, filepath.FromSlash(file.Path)))
		if err != nil {
			return err
		}
		sent, err := b.put(ctx, file.Key, file.SHA256, content)
		if err != nil {
			return fmt.Errorf("upload %s, file %d of %d: %w: nothing was deployed; the same command goes on from here", file.Path, i+1, len(list.Files), err)
		}
		if sent {
			term.writeMessage("uploaded s3://%s/%s", list.Bucket, file.Key)
		}
	}
	if _, err := b.put(ctx, list.Template, "", template); err != nil {
		return fmt.Errorf("upload the template: %w: nothing was deployed; the same command goes on from here", err)
	}
	term.writeMessage("uploaded s3://%s/%s", list.Bucket, list.Template)
	return nil
}

// s3Bucket is a bucket of the user's.
type s3Bucket struct {
	client *s3.Client
	name   string
}

// checkRegion refuses a bucket from which Lambda would take no code.
func (b s3Bucket) checkRegion(ctx context.Context, want string) error {
	out, err := b.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &b.name})
	region, status := "", 0
	if refused, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		region, status = refused.Response.Header.Get("X-Amz-Bucket-Region"), refused.HTTPStatusCode()
	} else if err == nil {
		region = aws.ToString(out.BucketRegion)
	}
	switch {
	case region != "" && region != want:
		return &inputError{fmt.Errorf("bucket %s is in region %s and the stack in %s: Lambda takes code from its own region alone; name another bucket, or set region",
			b.name, region, want)}
	case status == http.StatusNotFound:
		return &inputError{fmt.Errorf("bucket %s is not there: make it in region %s first", b.name, want)}
	case err != nil && (status != http.StatusForbidden || region == ""): // who may put objects need not see the bucket
		return fmt.Errorf("look at bucket %s: %w", b.name, err)
	}
	return nil
}

// shaKey is the metadata of an object that says what its content is.
const shaKey = "joiner-sha256"

// put writes an object unless it is there with the content whose checksum is given, and reports whether it did.
func (b s3Bucket) put(ctx context.Context, key, sum string, content []byte) (bool, error) {
	in := &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: bytes.NewReader(content), ChecksumAlgorithm: s3types.ChecksumAlgorithmSha256}
	if sum != "" {
		head, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: &key})
		if err == nil && head.Metadata[shaKey] == sum && aws.ToInt64(head.ContentLength) == int64(len(content)) {
			return false, nil
		}
		in.Metadata = map[string]string{shaKey: sum}
	}
	_, err := b.client.PutObject(ctx, in)
	return err == nil, err
}
