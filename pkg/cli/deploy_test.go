package cli

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeApp writes what the CDK app writes, or refuses settings with the word wrong in them.
const fakeApp = `#!/bin/sh
case "$CDK_CONTEXT_JSON $(cat "$4" 2>/dev/null)" in *wrong*) printf '!!!!\n!! Node 20 is end-of-life !!\n' >&2
  printf 'Runtime process exited abnormally: waitid: no child processesinfra: context key wrong: there is no such setting\n' >&2; exit 1;;
*full*) printf "panic: Error: ENOSPC: no space left on device, open 'cdk.out/x'\n\ngoroutine 1 [running]:\nmain.main()\n" >&2; exit 2;; esac
echo "$CDK_CONTEXT_JSON" >context.json
mkdir -p "$CDK_OUTDIR" && cd "$CDK_OUTDIR"
cp "$OLDPWD/functions/arm64/provision.zip" asset.h1.zip
cat >manifest.json <<'X'
{"artifacts": {"joiner-prod": {"type": "aws:cloudformation:stack", "environment": "aws://unknown-account/unknown-region", "properties":
  {"templateFile": "joiner-prod.template.json", "stackName": "joiner-prod", "bootstrapStackVersionSsmParameter": "/cdk-bootstrap/x/version"}}MORE}}
X
echo '{"Resources": {"Provision": {"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": "joiner-prod-provision", "Code": {"S3Bucket": "cdk", "S3Key": "h1.zip"}}}}}' >joiner-prod.template.json
echo '{"files": {"h1": {"source": {"path": "asset.h1.zip"}, "destinations": {"current": {"objectKey": "h1.zip"}}}}}' >joiner-prod.assets.json
`

const anotherStack = `, "joiner-other": {"type": "aws:cloudformation:stack", "environment": "aws://999900001111/eu-west-1", "properties": {"templateFile": "o.template.json"}}`

// releaseWorld is a release folder on a machine with Node and an account.
type releaseWorld struct {
	folder, ran  string // the file with the commands of npx
	bootstrapped bool
	stackVersion string // empty: no stack
	stackStatus  string
	locked       bool // nobody may take its protection away
	protected    bool // the stack, from deletion
	bucketRegion string
	shut         bool // the bucket takes objects and shows nothing
	objects      map[string]string
	most         int // objects that the bucket takes before it breaks
}

func newReleaseWorld(t *testing.T, more string) *releaseWorld {
	t.Helper()
	w := &releaseWorld{folder: t.TempDir(), ran: filepath.Join(t.TempDir(), "ran"), bucketRegion: "eu-west-1", stackStatus: "CREATE_COMPLETE", objects: map[string]string{}, most: 9}
	bin := t.TempDir()
	var sums strings.Builder
	for name, text := range map[string]string{
		filepath.Join(w.folder, "joiner-cdk"):                    strings.Replace(fakeApp, "MORE", more, 1),
		filepath.Join(w.folder, "functions/arm64/provision.zip"): "PK",
		filepath.Join(w.folder, "cdk.json"):                      `{"app": "./joiner-cdk -functions functions", "context": {"logRetentionDays": 30}}`,
		filepath.Join(bin, "node"):                               "#!/bin/sh\n",
		filepath.Join(bin, "npx"):                                "#!/bin/sh\necho \"$(pwd -P)$ $*\" >>" + w.ran + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if below, err := filepath.Rel(w.folder, name); err == nil && !strings.HasPrefix(below, "..") && below != "cdk.json" {
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(text)), below)
		}
	}
	if err := os.WriteFile(filepath.Join(w.folder, "SHA256SUMS"), []byte(sums.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_CONFIG_FILE": "/none"} {
		t.Setenv(name, value)
	}
	return w
}

// ServeHTTP is the account.
func (w *releaseWorld) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	bucket, key, isObject := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case strings.Contains(string(body), "Action=GetCallerIdentity"):
		fmt.Fprint(out, `<GetCallerIdentityResponse><GetCallerIdentityResult><Account>111122223333</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`)
	case strings.Contains(string(body), "Action=DescribeStacks") && w.stackVersion == "":
		out.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(out, `<ErrorResponse><Error><Message>Stack with id joiner-prod does not exist</Message></Error></ErrorResponse>`)
	case strings.Contains(string(body), "Action=DescribeStacks"):
		fmt.Fprintf(out, `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackStatus>%s</StackStatus><EnableTerminationProtection>%t</EnableTerminationProtection><Outputs><member><OutputKey>Version</OutputKey>`+
			`<OutputValue>%s</OutputValue></member></Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`, w.stackStatus, w.protected, w.stackVersion)
	case strings.Contains(string(body), "Action=UpdateTerminationProtection") && !w.locked:
		w.protected = strings.Contains(string(body), "EnableTerminationProtection=true")
		fmt.Fprint(out, `<UpdateTerminationProtectionResponse><UpdateTerminationProtectionResult><StackId>s</StackId></UpdateTerminationProtectionResult></UpdateTerminationProtectionResponse>`)
	case r.Header.Get("X-Amz-Target") == "AmazonSSM.GetParameter" && !w.bootstrapped:
		out.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(out, `{"__type": "ParameterNotFound"}`)
	case r.Header.Get("X-Amz-Target") == "AmazonSSM.GetParameter":
		fmt.Fprint(out, `{"Parameter": {"Value": "21"}}`)
	case bucket != "code":
		out.WriteHeader(http.StatusNotFound)
	case w.shut && r.Method == http.MethodHead:
		out.Header().Set("X-Amz-Bucket-Region", w.bucketRegion)
		out.WriteHeader(http.StatusForbidden)
	case !isObject:
		out.Header().Set("X-Amz-Bucket-Region", w.bucketRegion)
		if w.bucketRegion != "eu-west-1" {
			out.WriteHeader(http.StatusMovedPermanently)
		}
	case r.Method == http.MethodPut && len(w.objects) >= w.most:
		out.WriteHeader(http.StatusForbidden)
		fmt.Fprint(out, `<Error><Code>AccessDenied</Code></Error>`)
	case r.Method == http.MethodPut:
		w.objects[key] = r.Header.Get("X-Amz-Meta-Joiner-Sha256")
	case w.objects[key] == "":
		out.WriteHeader(http.StatusNotFound)
	default:
		out.Header().Set("X-Amz-Meta-Joiner-Sha256", w.objects[key])
		out.Header().Set("Content-Length", "2")
	}
}

// commands are those of npx, without the folder they all ran in.
func (w *releaseWorld) commands(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(w.ran)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	folder, err := filepath.EvalSymlinks(w.folder)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		command, inside := strings.CutPrefix(strings.TrimSpace(line), folder+"$ ")
		if !inside {
			t.Errorf("it ran elsewhere: %s", line)
		}
		out = append(out, command)
	}
	return out
}

func TestDeployBootstrapsOnceAndDeploys(t *testing.T) {
	w := newReleaseWorld(t, "")
	code, out, said := run("deploy", "--folder", w.folder, "--cluster", "prod")
	want := []string{"aws-cdk@2 bootstrap aws://111122223333/eu-west-1 --app cdk.out", "aws-cdk@2 deploy --app cdk.out"}
	if d := cmp.Diff(want, w.commands(t)); d != "" || code != 0 || out != "" {
		t.Errorf("exit %d, %s%s (-want +got):\n%s", code, out, said, d)
	}
	for _, c := range want {
		if !strings.Contains(said, "npx "+c+"\n") {
			t.Errorf("it does not print npx %s:\n%s", c, said)
		}
	}
	text, err := os.ReadFile(filepath.Join(w.folder, "context.json"))
	if got := strings.TrimSpace(string(text)); err != nil || got != `{"aws:cdk:enable-path-metadata":true,"clusterName":"prod","logRetentionDays":30}` {
		t.Errorf("the app was given %s, %v", got, err)
	}

	w.bootstrapped, w.stackVersion = true, "0.9.0"
	settings := filepath.Join(t.TempDir(), "my settings.json")
	if err := os.WriteFile(settings, []byte(`{"clusterName": "prod"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, said = run("deploy", "--folder", w.folder, "--settings", settings, "--yes")
	if got := w.commands(t)[2:]; code != 0 || len(got) != 1 || got[0] != "aws-cdk@2 deploy --app cdk.out --require-approval never" ||
		!strings.Contains(said, "stack joiner-prod is of version 0.9.0 and becomes ") {
		t.Errorf("exit %d, ran %q, said %s", code, got, said)
	}

	npx, err := exec.LookPath("npx")
	if err := errors.Join(err, os.WriteFile(npx, []byte("#!/bin/sh\nexit 1\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if code, _, said = run("deploy", "--folder", w.folder, "--settings", settings); code != 1 || !strings.Contains(said, "where no terminal is to ask at, add --yes") {
		t.Errorf("the CDK cannot ask: exit %d, %s", code, said)
	}
}

// The CDK protects a stack before it makes anything, and deletes one that did not come into being before it makes it
// anew: it could not. A stack that works stays protected.
func TestDeployAfterACreationThatFailed(t *testing.T) {
	for _, status := range []string{"ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_FAILED"} {
		w := newReleaseWorld(t, "")
		w.bootstrapped, w.stackVersion, w.stackStatus, w.protected = true, "0.9.0", status, true
		code, _, said := run("deploy", "--folder", w.folder, "--cluster", "prod")
		failed := strings.HasPrefix(status, "ROLLBACK_")
		if code != 0 || w.protected == failed || failed != strings.Contains(said, "stack joiner-prod is "+status+", so that nothing of it works: it is deleted and made anew") {
			t.Errorf("%s: exit %d, protected %t, said %s", status, code, w.protected, said)
		}
	}
	w := newReleaseWorld(t, "")
	w.bootstrapped, w.stackVersion, w.stackStatus, w.protected, w.locked = true, "0.9.0", "ROLLBACK_COMPLETE", true, true
	if code, _, said := run("deploy", "--folder", w.folder, "--cluster", "prod"); code == 0 || len(w.commands(t)) > 0 || !strings.Contains(said, "delete that stack, and deploy again") {
		t.Errorf("nobody may: exit %d, ran %v, said %s", code, w.commands(t), said)
	}
}

// One stack of another account: what cannot be looked at there is said.
func TestDeployOfSeveralClusters(t *testing.T) {
	w := newReleaseWorld(t, anotherStack)
	code, _, said := run("deploy", "--folder", w.folder)
	if d := cmp.Diff([]string{"aws-cdk@2 bootstrap aws://111122223333/eu-west-1 --app cdk.out", "aws-cdk@2 deploy --app cdk.out --all"}, w.commands(t)); d != "" || code != 0 ||
		!strings.Contains(said, "run npx aws-cdk@2 bootstrap aws://999900001111/eu-west-1 there") {
		t.Errorf("exit %d, %s (-want +got):\n%s", code, said, d)
	}
	if code, _, said := run("template", "--folder", w.folder, "--assets", "s3://code"); code != 2 || !strings.Contains(said, "name it with --cluster (stacks: joiner-other, joiner-prod)") {
		t.Errorf("a template of two: exit %d, %s", code, said)
	}
}

// Whatever is wrong with folder, settings and machine is said before anything runs.
func TestDeployRefuses(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(w *releaseWorld) error
		args  []string
		want  string
	}{
		{"a changed byte", func(w *releaseWorld) error {
			return os.WriteFile(filepath.Join(w.folder, "functions/arm64/provision.zip"), []byte("Pk"), 0o600)
		}, nil, "functions/arm64/provision.zip is not the file of the release"},
		{"a missing zip", func(w *releaseWorld) error {
			return os.Remove(filepath.Join(w.folder, "functions/arm64/provision.zip"))
		}, nil, "functions/arm64/provision.zip is missing"},
		{"no release", func(w *releaseWorld) error { return os.Remove(filepath.Join(w.folder, "SHA256SUMS")) }, nil, "is no release: unpack"},
		{"settings of another version", func(w *releaseWorld) error {
			return os.WriteFile(filepath.Join(w.folder, "cdk.json"), []byte(`{"context": {"wrong": 1}}`), 0o600)
		}, nil, "joiner deploy: make the template: context key wrong: there is no such setting\n"},
		{"Node.js of another age", func(*releaseWorld) error {
			node, err := exec.LookPath("node")
			return errors.Join(err, os.WriteFile(node, []byte("#!/bin/sh\necho v18.20.4\n"), 0o755))
		}, nil, "the program node on the PATH is v18.20.4, too old for the CDK: install Node.js 20 or newer"},
		{"a folder that cannot be written", func(w *releaseWorld) error {
			return os.WriteFile(filepath.Join(w.folder, "cdk.json"), []byte(`{"context": {"full": 1}}`), 0o600)
		}, nil, "make the template: ENOSPC: no space left on device, open 'cdk.out/x'\nSee"},
		{"cdk.json that is none", func(w *releaseWorld) error {
			return os.WriteFile(filepath.Join(w.folder, "cdk.json"), []byte(`{"context": `), 0o600)
		}, nil, "read settings of "},
		{"a misspelt context", func(w *releaseWorld) error {
			return os.WriteFile(filepath.Join(w.folder, "cdk.json"), []byte(`{"contxt": {"mode": "observe"}}`), 0o600)
		}, nil, `it has no object "context", in which settings stand`},
		{"a setting beside the context", func(w *releaseWorld) error {
			return os.WriteFile(filepath.Join(w.folder, "cdk.json"), []byte(`{"mode": "observe", "context": {}}`), 0o600)
		}, nil, `mode stands beside "context": write it within`},
		{"a setting that stands twice", func(w *releaseWorld) error {
			return os.WriteFile(filepath.Join(w.folder, "cdk.json"), []byte(`{"context": {"mode": "observe", "mode": "act"}}`), 0o600)
		}, nil, "mode stands twice: remove one"},
		{"no file of settings", nil, []string{"--settings", "none.json"}, "read settings: stat none.json"},
		{"a word too much", nil, []string{"prod"}, "name the cluster with --cluster"},
		{"a setting for the CDK alone", nil, []string{"--", "-c", "mode=observe"}, "-c comes too late"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newReleaseWorld(t, "")
			if c.spoil != nil {
				if err := c.spoil(w); err != nil {
					t.Fatal(err)
				}
			}
			code, out, said := run(append([]string{"deploy", "--folder", w.folder}, c.args...)...)
			if ran := w.commands(t); code != 2 || out != "" || len(ran) > 0 || !strings.Contains(said, c.want) {
				t.Errorf("exit %d, ran %q, said %s, want %q", code, ran, said, c.want)
			}
		})
	}
	w := newReleaseWorld(t, "")
	t.Setenv("PATH", t.TempDir())
	if code, _, said := run("deploy", "--folder", w.folder); code != 2 || !strings.Contains(said, "npx is not on the PATH: install Node.js") {
		t.Errorf("without Node: exit %d, %s", code, said)
	}
}

func TestTemplateAndUpload(t *testing.T) {
	w, out := newReleaseWorld(t, ""), t.TempDir()
	args := []string{"template", "--folder", w.folder, "--cluster", "prod", "--assets", "s3://code/joiner/", "--out", out, "--upload"}
	w.most = 1 // it stops in the middle
	if code, said, progress := run(args...); code != 1 || said != "" || !strings.Contains(progress, "nothing was deployed; the same command goes on from here") {
		t.Errorf("exit %d, %s%s", code, said, progress)
	}
	if files, err := os.ReadDir(out); err != nil || len(files) > 0 {
		t.Errorf("files %v, %v: want none of an upload that stopped", files, err)
	}
	w.most = 9
	code, said, progress := run(args...)
	if want := out + "/joiner-prod.template.json\n" + out + "/joiner-prod.assets.json\n"; code != 0 || said != want || strings.Contains(progress, "h1.zip") {
		t.Errorf("exit %d, %s, want %s; uploaded again: %s", code, said, want, progress)
	}
	keys := []string{}
	for k := range w.objects {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	text, err := os.ReadFile(out + "/joiner-prod.assets.json")
	if err != nil {
		t.Fatal(err)
	}
	var list map[string]any
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	delete(list, "version")
	template, err := os.ReadFile(out + "/joiner-prod.template.json")
	if err != nil {
		t.Fatal(err)
	}
	at := "joiner/joiner-prod-" + fmt.Sprintf("%x", sha256.Sum256(template))[:12] + ".template.json"
	if d := cmp.Diff([]string{"joiner/h1.zip", at}, keys); d != "" {
		t.Errorf("in the bucket (-want +got):\n%s", d)
	}
	want := map[string]any{"stack": "joiner-prod", "bucket": "code", "templateKey": at, "files": []any{map[string]any{"key": "joiner/h1.zip",
		"function": "joiner-prod-provision", "path": "functions/arm64/provision.zip", "sha256": fmt.Sprintf("%x", sha256.Sum256([]byte("PK")))}}}
	if d := cmp.Diff(want, list); d != "" {
		t.Errorf("the list (-want +got):\n%s", d)
	}
	w.shut, w.objects = true, map[string]string{}
	if code, _, progress := run(args...); code != 0 || len(w.objects) != 2 {
		t.Errorf("a bucket that takes objects and shows none: exit %d, %v, %s", code, w.objects, progress)
	}
	w.shut, w.objects = false, map[string]string{}
	args[8] = out + "/joiner-prod.template.json"
	if code, _, progress := run(args...); code != 1 || len(w.objects) > 0 || !strings.Contains(progress, "make folder of --out") {
		t.Errorf("a folder that cannot be made: exit %d, %v, %s", code, w.objects, progress)
	}
	args[8] = out
	for bucket, want := range map[string]string{"s3://none": "bucket none is not there", "s3://code/x": "bucket code is in region us-east-1 and the stack in eu-west-1", "code": "write s3://BUCKET/PREFIX"} {
		w.bucketRegion = "us-east-1"
		args[6] = bucket
		if code, said, progress := run(args...); code != 2 || said != "" || !strings.Contains(progress, want) {
			t.Errorf("%s: exit %d, %s%s, want %q", bucket, code, said, progress, want)
		}
	}
}
