package release_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/cli/release"
)

const sumOfA, sumOfB = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb", "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"

func TestChangedAndMissingFilesAreNamed(t *testing.T) {
	want, err := release.ParseChecksums(sumOfA + "  joiner-cdk\n" + sumOfB + "  functions/arm64/wake.zip\n" + sumOfB + "  LICENSE\n")
	if err != nil {
		t.Fatal(err)
	}
	got := release.CompareFiles(want, []release.Found{{Name: "LICENSE", SHA256: sumOfB}, {Name: "joiner-cdk", SHA256: sumOfB}, {Name: "functions/arm64/wake.zip"}})
	if d := cmp.Diff([]string{"joiner-cdk is not the file of the release: its bytes have changed", "functions/arm64/wake.zip is missing"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, bad := range []string{"", "\n", "joiner-cdk\n", sumOfA + " joiner-cdk", sumOfA[2:] + "  joiner-cdk", sumOfA + "  ../joiner-cdk", sumOfA + "  /etc/passwd",
		sumOfA + "  a/../b", sumOfA + "  a\n" + strings.Replace(sumOfB, "3", "x", 1) + "  b"} {
		if got, err := release.ParseChecksums(bad); err == nil {
			t.Errorf("%q is believed: %v", bad, got)
		}
	}
}

func TestStacksOfAnAssembly(t *testing.T) {
	got, err := release.ReadStacks([]byte(`{"version": "48.0.0", "artifacts": {
	  "joiner-b.assets": {"type": "cdk:asset-manifest", "properties": {"file": "joiner-b.assets.json"}},
	  "joiner-b": {"type": "aws:cloudformation:stack", "environment": "aws://unknown-account/unknown-region", "properties": {"templateFile": "joiner-b.template.json", "bootstrapStackVersionSsmParameter": "/cdk-bootstrap/hnb659fds/version"}},
	  "one": {"type": "aws:cloudformation:stack", "environment": "aws://111122223333/eu-west-1", "properties": {"templateFile": "one.template.json", "stackName": "joiner-a"}}}}`))
	want := []release.Stack{{Name: "joiner-a", TemplateFile: "one.template.json", AssetsFile: "one.assets.json", Account: "111122223333", Region: "eu-west-1"},
		{Name: "joiner-b", TemplateFile: "joiner-b.template.json", AssetsFile: "joiner-b.assets.json", BootstrapParameter: "/cdk-bootstrap/hnb659fds/version"}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func TestPlacesInS3(t *testing.T) {
	for text, want := range map[string]string{"s3://code/joiner/v1/": "joiner/v1/x.zip", "s3://code": "x.zip", "s3://code/": "x.zip", "s3://code//a//b": "a/b/x.zip"} {
		at, err := release.ParseLocation(text)
		if err != nil || at.Bucket != "code" || at.Key("x.zip") != want {
			t.Errorf("%s: %+v, key %s, %v; want %s", text, at, at.Key("x.zip"), err, want)
		}
	}
	for _, bad := range []string{"", "code/joiner", "s3://", "s3:///joiner", "https://code.s3.amazonaws.com", "s3://Code", "s3://a"} {
		if at, err := release.ParseLocation(bad); err == nil {
			t.Errorf("%q became %+v", bad, at)
		}
	}
}

// template is what the CDK writes, with more in it.
func template(more string) []byte {
	return []byte(`{"Description": "a < b", "Resources": {
	  "Provision": {"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": "joiner-a-provision", "MemorySize": 512, "Code": {"S3Bucket": {"Fn::Sub": "cdk-x-assets-${AWS::AccountId}"}, "S3Key": "h1.zip"}}},
	  "Setup": {"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": "joiner-a-setup", "Code": {"S3Bucket": {"Fn::Sub": "cdk-x-assets-${AWS::AccountId}"}, "S3Key": "h2.zip"}}},
	  "Role": {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "cdk-nodes"}}` + more + `}}`)
}

func TestOnlyTheCodeMoves(t *testing.T) {
	assets, err := release.ReadAssets([]byte(`{"files": {"1": {"source": {"path": "asset.1.zip", "packaging": "file"}, "destinations": {"current": {"bucketName": "cdk", "objectKey": "h1.zip"}}},
	  "2": {"source": {"path": "asset.2.zip"}, "destinations": {"current": {"objectKey": "h2.zip"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	at := release.Location{Bucket: "code", Prefix: "joiner"}
	text, uploads, err := release.PlainTemplate(template(""), assets, at)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]release.Upload{{Key: "joiner/h1.zip", Function: "joiner-a-provision", Asset: "asset.1.zip"}, {Key: "joiner/h2.zip", Function: "joiner-a-setup", Asset: "asset.2.zip"}}, uploads); d != "" {
		t.Errorf("uploads (-want +got):\n%s", d)
	}
	moved := strings.NewReplacer(`{"Fn::Sub": "cdk-x-assets-${AWS::AccountId}"}`, `"code"`, `"h1.zip"`, `"joiner/h1.zip"`, `"h2.zip"`, `"joiner/h2.zip"`).Replace(string(template("")))
	var want, got any
	if err := json.Unmarshal([]byte(moved), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" || !strings.Contains(string(text), "a < b") {
		t.Errorf("template (-want +got):\n%s", d)
	}
	for more, want := range map[string]string{
		`, "Wake": {"Type": "AWS::Lambda::Function", "Properties": {"Code": {"S3Key": "h3.zip"}}}`:                                                   "the code of Wake is map[S3Key:h3.zip], which is no file of the CDK app",
		`, "Layer": {"Type": "AWS::Lambda::LayerVersion", "Properties": {"Content": [{"S3Bucket": {"Fn::Sub": "cdk-x-assets-${AWS::AccountId}"}}]}}`: "something in it besides code is in the CDK's bucket",
		`, "Big": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "` + strings.Repeat("x", 1<<20) + `"}}`:                                   "CloudFormation takes 1048576",
	} {
		if _, _, err := release.PlainTemplate(template(more), assets, at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if _, _, err := release.PlainTemplate([]byte(`{"Resources": {}}`), assets, at); err == nil || !strings.Contains(err.Error(), "it has no AWS::Lambda::Function") {
		t.Errorf("an empty template: %v", err)
	}
}
