package release

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

const (
	stackArtifact = "aws:cloudformation:stack"
	functionType  = "AWS::Lambda::Function"
	unknownPlace  = "unknown-" // account and region that the CDK takes from the credentials

	// mostTemplateBytes is the largest number of bytes that CloudFormation takes of a template in a bucket.
	mostTemplateBytes = 1 << 20
)

// ReadStacks reads the manifest of a cloud assembly.
func ReadStacks(manifest []byte) ([]Stack, error) {
	var m struct {
		Artifacts map[string]struct {
			Type, Environment string
			Properties        struct {
				TemplateFile, StackName           string
				BootstrapStackVersionSSMParameter string
			}
		}
	}
	if err := json.Unmarshal(manifest, &m); err != nil {
		return nil, fmt.Errorf("read the manifest of the CDK app: %w", err)
	}
	var out []Stack
	for id, a := range m.Artifacts {
		if a.Type != stackArtifact {
			continue
		}
		s := Stack{Name: a.Properties.StackName, TemplateFile: a.Properties.TemplateFile,
			AssetsFile:         strings.TrimSuffix(a.Properties.TemplateFile, ".template.json") + ".assets.json",
			BootstrapParameter: a.Properties.BootstrapStackVersionSSMParameter}
		if s.Name == "" {
			s.Name = id
		}
		s.Account, s.Region, _ = strings.Cut(strings.TrimPrefix(a.Environment, "aws://"), "/")
		if strings.HasPrefix(s.Account, unknownPlace) {
			s.Account = ""
		}
		if strings.HasPrefix(s.Region, unknownPlace) {
			s.Region = ""
		}
		out = append(out, s)
	}
	sortStacks(out)
	return out, nil
}

// AssetFile is a file that a template names as code.
type AssetFile struct {
	Key  string // of the object in the bucket of the CDK
	Path string // in the cloud assembly
}

// ReadAssets reads the assets of one stack.
func ReadAssets(text []byte) ([]AssetFile, error) {
	var m struct {
		Files map[string]struct {
			Source       struct{ Path string }
			Destinations map[string]struct{ ObjectKey string }
		}
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("read the assets of the CDK app: %w", err)
	}
	var out []AssetFile
	for _, hash := range slices.Sorted(maps.Keys(m.Files)) {
		f := m.Files[hash]
		for _, place := range slices.Sorted(maps.Keys(f.Destinations)) {
			out = append(out, AssetFile{Key: f.Destinations[place].ObjectKey, Path: f.Source.Path})
		}
	}
	return out, nil
}

// Location is a place for objects in S3.
type Location struct {
	Bucket string // its name
	Prefix string // of keys, without slash at its ends; empty for none
}

// ParseLocation reads s3://BUCKET/PREFIX.
func ParseLocation(text string) (Location, error) {
	rest, is := strings.CutPrefix(text, "s3://")
	bucket, prefix, _ := strings.Cut(rest, "/")
	if !is || !regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`).MatchString(bucket) {
		return Location{}, fmt.Errorf("%q is no place in S3: write s3://BUCKET/PREFIX", text)
	}
	return Location{bucket, strings.Trim(path.Clean("/"+prefix), "/")}, nil
}

// Key is the key of an object at the location.
func (l Location) Key(name string) string { return path.Join(l.Prefix, name) }

// Upload is an object that a template needs in a bucket.
type Upload struct {
	Key      string `json:"key"`      // of the object in the bucket, with the prefix
	Function string `json:"function"` // name of the Lambda function whose code it is
	Asset    string `json:"-"`        // in the cloud assembly
}

// PlainTemplate returns the template with its code at a location, and what must be there before it is deployed. All
// else stays as it is, names of resources included, so that a stack can be deployed by either. The error says what of
// the template still needs the CDK's bootstrap.
func PlainTemplate(template []byte, assets []AssetFile, at Location) ([]byte, []Upload, error) {
	var whole map[string]any
	decoder := json.NewDecoder(bytes.NewReader(template))
	decoder.UseNumber()
	if err := decoder.Decode(&whole); err != nil {
		return nil, nil, fmt.Errorf("read template: %w", err)
	}
	paths := map[string]string{}
	for _, a := range assets {
		paths[a.Key] = a.Path
	}
	resources, _ := whole["Resources"].(map[string]any)
	var uploads []Upload
	var before any // the bucket of the CDK
	for _, id := range slices.Sorted(maps.Keys(resources)) {
		resource, _ := resources[id].(map[string]any)
		properties, _ := resource["Properties"].(map[string]any)
		if resource["Type"] != functionType {
			continue
		}
		code, _ := properties["Code"].(map[string]any)
		key, _ := code["S3Key"].(string)
		asset, known := paths[key]
		if !known {
			return nil, nil, fmt.Errorf("read template: the code of %s is %v, which is no file of the CDK app", id, code)
		}
		name, _ := properties["FunctionName"].(string)
		before = code["S3Bucket"]
		properties["Code"] = map[string]any{"S3Bucket": at.Bucket, "S3Key": at.Key(key)}
		uploads = append(uploads, Upload{Key: at.Key(key), Function: name, Asset: asset})
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(whole); err != nil {
		return nil, nil, fmt.Errorf("write template: %w", err)
	}
	switch {
	case len(uploads) == 0:
		return nil, nil, fmt.Errorf("read template: it has no %s", functionType)
	case namesBucket(whole, before):
		return nil, nil, fmt.Errorf("write template: something in it besides code is in the CDK's bucket %v", before)
	case out.Len() > mostTemplateBytes:
		return nil, nil, fmt.Errorf("write template: it has %d bytes, CloudFormation takes %d: set alarms: essential or dashboard: false",
			out.Len(), mostTemplateBytes)
	}
	return out.Bytes(), uploads, nil
}

// namesBucket reports whether a value is the bucket or has it somewhere inside.
func namesBucket(value, bucket any) bool {
	if reflect.DeepEqual(value, bucket) {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if namesBucket(inner, bucket) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(inner any) bool { return namesBucket(inner, bucket) })
	}
	return false
}
