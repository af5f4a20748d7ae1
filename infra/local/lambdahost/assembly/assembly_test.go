package assembly

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// copyDemo copies the demo assembly, makes the folder of its one code asset, and lets the test change the template.
func copyDemo(t *testing.T, change func(resources map[string]any)) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../testdata/demo")); err != nil {
		t.Fatal(err)
	}
	asset := "asset.5e1f0cfb2c6d4f7aa1c0c7b2f4dd3d1c8b7e1a9f4c1d2e3f405162738495a6b7"
	if err := os.Mkdir(filepath.Join(dir, asset), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "demo.template.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var template map[string]any
	if err := json.Unmarshal(text, &template); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(template["Resources"].(map[string]any))
	}
	if text, err = json.Marshal(template); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func loadDemo(t *testing.T) *Assembly {
	t.Helper()
	a, err := Load(copyDemo(t, nil), Place{Account: "111122223333", Region: "us-west-2"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestLoadFunction(t *testing.T) {
	f := loadDemo(t).FindFunction("joiner-demo-probe")
	if f == nil {
		t.Fatal("no function joiner-demo-probe")
	}
	if !strings.HasPrefix(f.RoleARN, "arn:aws:iam::111122223333:role/demo-ProbeRole1A2B3C4D-") {
		t.Errorf("role = %s", f.RoleARN)
	}
	if !filepath.IsAbs(f.Code) || !strings.HasPrefix(filepath.Base(f.Code), "asset.5e1f") {
		t.Errorf("code = %s", f.Code)
	}
	bucket := f.Environment["CATALOG_BUCKET"]
	if !strings.HasPrefix(bucket, "demo-catalog7a8b9c0d-") {
		t.Errorf("bucket = %s", bucket)
	}
	onFailure := f.Async.OnFailureARN
	if !strings.HasPrefix(onFailure, "arn:aws:sqs:us-west-2:111122223333:demo-Failures3A4B5C6D-") {
		t.Errorf("on failure = %s", onFailure)
	}
	want := Function{
		Resource: Resource{Stack: "demo", LogicalID: "Probe53EB3A5E", Type: "AWS::Lambda::Function"},
		Name:     "joiner-demo-probe", Short: "probe",
		ARN: "arn:aws:lambda:us-west-2:111122223333:function:joiner-demo-probe", RoleARN: f.RoleARN,
		Handler: "bootstrap", Runtime: "provided.al2023", Architecture: "x86_64",
		Environment: map[string]string{
			"CLUSTER_NAME": "demo", "CATALOG_BUCKET": bucket, "LIFECYCLE_FUNCTION": "joiner-demo-single",
			"SELF": "https://joiner-demo-dead-letters.amazonaws.com",
		},
		Timeout: 2 * time.Second, MemoryMB: 256, Code: f.Code,
		DeadLetterARN: "arn:aws:sqs:us-west-2:111122223333:joiner-demo-dead-letters",
		Async:         Async{Retries: 1, MaxAge: time.Hour, OnFailureARN: onFailure, Qualifier: "$LATEST"},
	}
	if diff := cmp.Diff(want, *f); diff != "" {
		t.Errorf("function (-want +got):\n%s", diff)
	}
}

func TestLoadDefaultsAndReserved(t *testing.T) {
	a := loadDemo(t)
	broken, single := a.FindFunction("joiner-demo-broken"), a.FindFunction("111122223333:function:joiner-demo-single:$LATEST")
	if broken.Timeout != 3*time.Second || broken.MemoryMB != 128 || broken.Reserved != nil {
		t.Errorf("defaults: timeout %v, memory %d, reserved %v", broken.Timeout, broken.MemoryMB, broken.Reserved)
	}
	if broken.Async != (Async{Retries: 2, MaxAge: 6 * time.Hour}) {
		t.Errorf("defaults: async %+v", broken.Async)
	}
	if single.Reserved == nil || *single.Reserved != 1 {
		t.Errorf("reserved = %v, want 1", single.Reserved)
	}
	if broken.MayLoop || !single.MayLoop {
		t.Errorf("RecursiveLoop: broken may loop %t, single %t", broken.MayLoop, single.MayLoop)
	}
}

func TestLoadRulesAndPermissions(t *testing.T) {
	a := loadDemo(t)
	rules := map[string]Rule{}
	for _, r := range a.Rules {
		rules[r.LogicalID] = r
	}
	tick := rules["Tick2B3C4D5E"]
	if tick.Schedule != "rate(1 minute)" || !tick.Enabled || len(tick.Targets) != 1 {
		t.Fatalf("tick = %+v", tick)
	}
	if target := tick.Targets[0]; *target.MaxRetries != 0 || target.MaxAge != time.Minute {
		t.Errorf("target = %+v", target)
	}
	spot := rules["SpotRule0A1B2C3D"]
	if spot.ARN != "arn:aws:events:us-west-2:111122223333:rule/joiner-demo-spotinterruption" {
		t.Errorf("spot rule = %s", spot.ARN)
	}
	if rules["DisabledRule2C3D4E5F"].Enabled {
		t.Error("the disabled rule is enabled")
	}
	var from []string
	for _, p := range a.Permissions {
		if p.FunctionARN == a.FindFunction("joiner-demo-probe").ARN {
			from = append(from, p.SourceARN)
		}
	}
	if diff := cmp.Diff([]string{spot.ARN}, from); diff != "" {
		t.Errorf("permissions of probe (-want +got):\n%s", diff)
	}
}

func TestLoadAccess(t *testing.T) {
	a := loadDemo(t)
	probe := a.FindFunction("joiner-demo-probe").RoleARN
	wantEntries := []AccessEntry{
		{
			Resource: Resource{Stack: "demo", LogicalID: "NodeEntry3B4C5D6E", Type: "AWS::EKS::AccessEntry"},
			Cluster:  "demo", Type: "EC2_LINUX", PrincipalARN: "arn:aws:iam::111122223333:role/KarpenterNodeRole-demo",
		},
		{
			Resource: Resource{Stack: "demo", LogicalID: "ProbeEntry5F6A7B8C", Type: "AWS::EKS::AccessEntry"},
			Cluster:  "demo", Type: "STANDARD", PrincipalARN: probe, Groups: []string{"joiner-provision"},
		},
	}
	if diff := cmp.Diff(wantEntries, a.AccessEntries); diff != "" {
		t.Errorf("access entries (-want +got):\n%s", diff)
	}
	wantProfiles := []InstanceProfile{{
		Resource: Resource{Stack: "demo", LogicalID: "NodeProfile7F8A9B0C", Type: "AWS::IAM::InstanceProfile"},
		Name:     "joiner-demo-node", ARN: "arn:aws:iam::111122223333:instance-profile/joiner/joiner-demo-node",
		Path: "/joiner/", Roles: []string{"KarpenterNodeRole-demo"},
	}}
	if diff := cmp.Diff(wantProfiles, a.InstanceProfiles); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
	queue := "arn:aws:sqs:us-west-2:111122223333:joiner-demo-dead-letters"
	if !a.RoleMay(probe, "sqs:SendMessage", queue) {
		t.Error("the role may not send to the dead-letter queue")
	}
	if a.RoleMay(probe, "sqs:ReceiveMessage", queue) || a.RoleMay(probe, "sqs:SendMessage", queue+"-2") {
		t.Error("the role may more than its policy says")
	}
}

func TestLoadKeepsInert(t *testing.T) {
	var got []string
	for _, r := range loadDemo(t).Inert {
		got = append(got, r.Type)
	}
	want := []string{"AWS::CDK::Metadata", "AWS::S3::BucketPolicy", "AWS::CloudWatch::Alarm", "AWS::Logs::LogGroup"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("inert (-want +got):\n%s", diff)
	}
}

func TestLoadRefuses(t *testing.T) {
	properties := func(resources map[string]any, id string) map[string]any {
		return resources[id].(map[string]any)["Properties"].(map[string]any)
	}
	cases := []struct {
		name   string
		change func(map[string]any)
		want   string
	}{
		{"unknown type", func(r map[string]any) {
			r["Table"] = map[string]any{"Type": "AWS::DynamoDB::Table"}
		}, "resource Table (AWS::DynamoDB::Table): unknown resource type"},
		{"unknown intrinsic", func(r map[string]any) {
			properties(r, "Single1E2F3A4B")["Environment"] = map[string]any{"Variables": map[string]any{
				"X": map[string]any{"Fn::ImportValue": "other"},
			}}
		}, "Environment: Variables: X: Fn::ImportValue: unknown intrinsic function"},
		{"dangling reference", func(r map[string]any) {
			properties(r, "Single1E2F3A4B")["Role"] = map[string]any{"Fn::GetAtt": []any{"Gone", "Arn"}}
		}, `Role: Fn::GetAtt: "Gone" is no resource of the template`},
		{"unknown attribute", func(r map[string]any) {
			properties(r, "Single1E2F3A4B")["Role"] = map[string]any{"Fn::GetAtt": []any{"Probe53EB3A5E", "Color"}}
		}, "unknown attribute Color"},
		{"missing asset", func(r map[string]any) {
			properties(r, "Single1E2F3A4B")["Code"] = map[string]any{"S3Key": "beef.zip"}
		}, `find code "beef.zip"`},
		{"role may not write dead letters", func(r map[string]any) {
			delete(r, "ProbeRoleDefaultPolicy5E6F7A8B")
		}, "its role may not sqs:SendMessage to arn:aws:sqs:us-west-2:111122223333:joiner-demo-dead-letters"},
		{"system group", func(r map[string]any) {
			properties(r, "ProbeEntry5F6A7B8C")["KubernetesGroups"] = []any{"system:masters"}
		}, "EKS refuses groups"},
		{"groups of a node entry", func(r map[string]any) {
			properties(r, "NodeEntry3B4C5D6E")["KubernetesGroups"] = []any{"joiner-node"}
		}, "takes neither groups nor policies"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(copyDemo(t, c.change), Place{Account: "111122223333", Region: "us-west-2"})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v\nwant it to contain %q", err, c.want)
			}
		})
	}
}

func TestLoadWantsAPlace(t *testing.T) {
	_, err := Load(copyDemo(t, nil), Place{})
	if err == nil || !strings.Contains(err.Error(), "account or region is not known") {
		t.Errorf("error = %v", err)
	}
}

func TestResolve(t *testing.T) {
	s := &stack{name: "demo", place: Place{Account: "1", Region: "us-west-2"}, template: template{
		Conditions: map[string]any{"Here": map[string]any{"Fn::Equals": []any{map[string]any{"Ref": "AWS::Region"}, "us-west-2"}}},
		Mappings:   map[string]map[string]map[string]any{"M": {"a": {"b": "c"}}},
		Resources:  map[string]resource{"Q": {Type: "AWS::SQS::Queue", Properties: map[string]any{"QueueName": "q"}}},
	}}
	cases := []struct{ name, text, want string }{
		{"sub", `{"Fn::Sub":"${AWS::Partition}/${Q.Arn}/${!Literal}"}`, `"aws/arn:aws:sqs:us-west-2:1:q/${Literal}"`},
		{"sub with map", `{"Fn::Sub":["${A}-${AWS::AccountId}",{"A":{"Ref":"AWS::Region"}}]}`, `"us-west-2-1"`},
		{"if", `{"Fn::If":["Here","yes","no"]}`, `"yes"`},
		{"if not, without a value", `{"a":{"Fn::If":["Here",{"Ref":"AWS::NoValue"},"no"]},"b":1}`, `{"b":1}`},
		{"select of split", `{"Fn::Select":[1,{"Fn::Split":["/","a/b/c"]}]}`, `"b"`},
		{"zones", `{"Fn::Select":["0",{"Fn::GetAZs":""}]}`, `"us-west-2a"`},
		{"map", `{"Fn::FindInMap":["M","a","b"]}`, `"c"`},
		{"base64", `{"Fn::Base64":{"Fn::Join":["-",["a",1]]}}`, `"YS0x"`},
		{"policy condition is data", `{"Condition":{"StringEquals":{"a":"b"}}}`, `{"Condition":{"StringEquals":{"a":"b"}}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var raw any
			if err := json.Unmarshal([]byte(c.text), &raw); err != nil {
				t.Fatal(err)
			}
			value, err := s.resolveValue(raw)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestQueueAccepts(t *testing.T) {
	const queue, rule = "arn:aws:sqs:r:1:q", "arn:aws:events:r:1:rule/x"
	document := `{"Statement":[
		{"Effect":"Deny","Action":"sqs:*","Principal":{"AWS":"*"},"Resource":"arn:aws:sqs:r:1:q","Condition":{"Bool":{"aws:SecureTransport":false}}},
		{"Effect":"Allow","Action":"sqs:SendMessage","Principal":"*","Resource":"arn:aws:sqs:r:1:q"},
		{"Effect":"Allow","Action":["sqs:SendMessage"],"Principal":{"Service":"events.amazonaws.com"},"Resource":"arn:aws:sqs:r:1:q",
		 "Condition":{"ArnEquals":{"aws:SourceArn":"arn:aws:events:r:1:rule/x"}}}]}`
	a := &Assembly{Queues: []Queue{{ARN: queue, Policies: []json.RawMessage{json.RawMessage(document)}}}}
	cases := []struct {
		service, source string
		want            bool
	}{
		{"events.amazonaws.com", rule, true},
		{"events.amazonaws.com", rule + "y", false},
		{"sns.amazonaws.com", rule, false},
	}
	for _, c := range cases {
		if got := a.QueueAccepts(queue, c.service, c.source); got != c.want {
			t.Errorf("%s for %s: %v, want %v", c.service, c.source, got, c.want)
		}
	}
}

func TestLike(t *testing.T) {
	cases := []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true}, {"a*c", "abbc", true}, {"a*c", "abbd", false}, {"a?c", "abc", true}, {"a?c", "ac", false},
		{"arn:*:rule/x", "arn:aws:events:r:1:rule/x", true}, {"abc", "abcd", false},
	}
	for _, c := range cases {
		if got := MatchesWildcards(c.pattern, c.text); got != c.want {
			t.Errorf("Like(%q, %q) = %v", c.pattern, c.text, got)
		}
	}
}

// TestLoadURL has what push is made of: a URL for anybody, and a generated secret that two functions get.
func TestLoadURL(t *testing.T) {
	dir := copyDemo(t, func(r map[string]any) {
		var probe string
		for id, v := range r {
			if p, _ := v.(map[string]any)["Properties"].(map[string]any); p["FunctionName"] == "joiner-demo-probe" {
				probe = id
			}
		}
		r["Path"] = map[string]any{"Type": "AWS::SecretsManager::Secret", "Properties": map[string]any{
			"GenerateSecretString": map[string]any{"ExcludePunctuation": true, "PasswordLength": 48}}}
		r["Url"] = map[string]any{"Type": "AWS::Lambda::Url", "Properties": map[string]any{
			"AuthType": "NONE", "TargetFunctionArn": map[string]any{"Fn::GetAtt": []any{probe, "Arn"}}}}
		r["ByUrl"] = map[string]any{"Type": "AWS::Lambda::Permission", "Properties": map[string]any{"Action": "lambda:InvokeFunctionUrl",
			"FunctionName": map[string]any{"Ref": probe}, "Principal": "*", "FunctionUrlAuthType": "NONE"}}
		env := r[probe].(map[string]any)["Properties"].(map[string]any)["Environment"].(map[string]any)["Variables"].(map[string]any)
		env["SECRET"] = map[string]any{"Fn::Join": []any{"", []any{"{{resolve:secretsmanager:", map[string]any{"Ref": "Path"}, ":SecretString:::}}"}}}
		env["AGAIN"], env["AT"] = env["SECRET"], map[string]any{"Fn::GetAtt": []any{"Url", "FunctionUrl"}}
	})
	a, err := Load(dir, Place{Account: "111122223333", Region: "us-west-2"})
	if err != nil {
		t.Fatal(err)
	}
	f := a.FindFunction("joiner-demo-probe")
	secret := f.Environment["SECRET"]
	if len(secret) != 48 || strings.Trim(secret, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != "" || f.Environment["AGAIN"] != secret {
		t.Errorf("secret %q, once more %q", secret, f.Environment["AGAIN"])
	}
	if f.URL == nil || f.URL.AuthType != "NONE" || f.Environment["AT"] != f.URL.Address || !strings.HasSuffix(f.URL.Address, ".lambda-url.us-west-2.on.aws/") {
		t.Errorf("URL %+v, known as %s", f.URL, f.Environment["AT"])
	}
	last := a.Permissions[0]
	for _, p := range a.Permissions {
		if p.LogicalID == "ByUrl" {
			last = p
		}
	}
	if last.URLAuthType != "NONE" || last.Principal != "*" || last.FunctionARN != f.ARN {
		t.Errorf("permission %+v", last)
	}
	again, err := Load(dir, Place{Account: "111122223333", Region: "us-west-2"})
	if err != nil || again.FindFunction("joiner-demo-probe").Environment["SECRET"] == secret {
		t.Errorf("the secret is the same in another deployment (%v)", err)
	}
}

// CloudFormation takes a number as a text, and from a custom resource.
func TestReadMemory(t *testing.T) {
	answer := AnswerTo("Preflight", "FunctionMemory")
	for _, c := range []struct {
		size any
		want int64
		like string
	}{{nil, 128, ""}, {512.0, 512, ""}, {"1024", 1024, ""}, {answer, 128, answer}} {
		if got, like, err := readMemory(c.size); got != c.want || like != c.like || err != nil {
			t.Errorf("%v: %d like %q, %v", c.size, got, like, err)
		}
	}
	for _, size := range []any{"much", true} {
		if _, _, err := readMemory(size); err == nil {
			t.Errorf("%v is taken for memory", size)
		}
	}
}
