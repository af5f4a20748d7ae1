package stack_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/cli/release"
	"joiner.sh/pkg/settings"
)

// forms are settings beside which the template is kept in synthesized, for tests that play CloudFormation with it and
// cannot synthesize: what a resource of plain becomes, null for one that goes.
func forms() map[string]map[string]any {
	network := map[string]any{"vpcID": vpc, "subnetIDs": []any{subnetA, subnetB}}
	with := func(more map[string]any) map[string]any {
		out := maps.Clone(network)
		maps.Copy(out, more)
		return out
	}
	return map[string]map[string]any{
		"architecture":            {"architecture": "x86_64"},
		"alarms":                  {"alarmEmail": "a@example.com", "priceAlarmUSD": "10"},
		"alarms-essential":        {"alarms": "essential"},
		"commitments":             {"commitments": "true"},
		"company":                 {"permissionsBoundary": boundary, "kmsKey": ownKey, "tags": map[string]any{"owner": "platform"}},
		"dashboard":               {"dashboard": "false"},
		"deployment":              {"deployment": "2"},
		"drain":                   {"onDelete": "drain"},
		"drain-nodeRole":          {"onDelete": "drain", "nodeRole": "nodes"},
		"drain-windows":           {"onDelete": "drain", "windowsNodes": "true"},
		"endpoints":               with(map[string]any{"vpcEndpoints": "true"}),
		"endpoints-ssm":           with(map[string]any{"vpcEndpoints": "ssm,lambda"}),
		"endpoints-drain":         with(map[string]any{"vpcEndpoints": "true", "onDelete": "drain"}),
		"environment":             {"batchIdle": "2s"},
		"functionMemory":          {"functionMemory": "1769"},
		"groups":                  with(map[string]any{"securityGroupIDs": []any{"sg-0aaaaaaaaaaaaaaa0"}}),
		"hibernation":             {"hibernationSchedule": "CRON_TZ=Europe/Berlin 0 20 * * 1-5", "hibernationDuration": "10h"},
		"imageParameters":         {"imageParameters": "/golden/*"},
		"interruptionHandling":    {"interruptionHandling": "false"},
		"interruptionConcurrency": {"interruptionConcurrency": "7"},
		"logRetentionDays":        {"logRetentionDays": "30"},
		"network":                 with(map[string]any{"clusterSecurityGroupID": cluster}),
		"network-drain":           with(map[string]any{"clusterSecurityGroupID": cluster, "onDelete": "drain"}),
		"manifests":               {"manifests": "external"},
		"nodePolicies":            {"nodePolicies": "AmazonEKSWorkerNodeMinimalPolicy"},
		"nodeRole":                {"nodeRole": "KarpenterNodeRole-demo"},
		"nodeRoles":               {"nodeRoles": "team/gpu"},
		"observe":                 {"mode": "observe"},
		"plain":                   {},
		"provisionStatements":     {"provisionStatements": []any{map[string]any{"Effect": "Allow", "Action": "kms:CreateGrant", "Resource": "arn:aws:kms:us-west-2:111122223333:key/1"}}},
		"push":                    {"trigger": "push"},
		"remoteWrite":             {"remoteWriteURL": "https://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-12345678/api/v1/remote_write"},
		"rolePath":                {"rolePath": "/team/"},
		"tracing":                 {"tracing": "false"},
		"windows":                 {"windowsNodes": "true"},
		"windows-role":            {"windowsNodes": "windows"},
		"zonalShift":              {"zonalShift": "true"},
	}
}

// TestForms keeps the templates for those who cannot synthesize. Each setting of the stack is in one of the forms.
func TestForms(t *testing.T) {
	// The first no template shows; with each of the others the stack is another one.
	named := map[string]bool{"terminationProtection": true, "account": true, "region": true, "namePrefix": true}
	all, dist := forms(), placeholders(t)
	written := map[string]map[string]any{}
	for name, settings := range all {
		context := map[string]any{"clusterName": "demo", "distFolder": dist}
		maps.Copy(context, settings)
		for key := range settings {
			named[key] = true
		}
		raw, err := json.Marshal(mustSynth(t, context).ToJSON())
		if err != nil {
			t.Fatal(err)
		}
		checkPlain(t, name, raw)
		var template struct{ Resources map[string]any }
		if err := json.Unmarshal(raw, &template); err != nil {
			t.Fatal(err)
		}
		if p, ok := template.Resources["SetupResource"].(map[string]any)["Properties"].(map[string]any); ok {
			p["Manifests"] = "(hash)" // of all manifests: none of them is a matter of forms
		}
		written[name] = template.Resources
	}
	for _, s := range settings.AllSettings() {
		if s.Env == "" && !named[s.Name] {
			t.Errorf("no form has the setting %s: add it to one", s.Name)
		}
	}
	for name, resources := range written {
		compareForm(t, filepath.Join("synthesized", name+".json"), formText(t, name, written["plain"], resources))
	}
}

// checkPlain compares a template with what joiner template makes of it: all is the same but the place of the code, so
// that a stack that was made by one road is updated by the other and nothing is replaced.
func checkPlain(t *testing.T, name string, raw []byte) {
	t.Helper()
	var want, got map[string]any
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	var assets []release.AssetFile
	functions := 0
	for _, r := range want["Resources"].(map[string]any) {
		if r := r.(map[string]any); r["Type"] == "AWS::Lambda::Function" {
			code := r["Properties"].(map[string]any)["Code"].(map[string]any)
			key := code["S3Key"].(string)
			assets = append(assets, release.AssetFile{Key: key, Path: "asset." + key})
			code["S3Bucket"], code["S3Key"] = "code", "joiner/"+key
			functions++
		}
	}
	text, uploads, err := release.PlainTemplate(raw, assets, release.Location{Bucket: "code", Prefix: "joiner"})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" || len(uploads) != functions || functions < 7 || got["Parameters"] != nil || got["Rules"] != nil {
		t.Errorf("%s: %d functions, %d uploads, parameters %v (-template of the CDK +plain one):\n%s", name, functions, len(uploads), got["Parameters"], d)
	}
}

// formText is one line for each resource that is not as in plain.
func formText(t *testing.T, name string, plain, resources map[string]any) []byte {
	t.Helper()
	differs := map[string]any{}
	for id, r := range resources {
		if name == "plain" || !reflect.DeepEqual(r, plain[id]) {
			differs[id] = r
		}
	}
	for id := range plain {
		if resources[id] == nil {
			differs[id] = nil
		}
	}
	var b bytes.Buffer
	b.WriteString("{\n")
	for i, id := range slices.Sorted(maps.Keys(differs)) {
		line, err := json.Marshal(differs[id])
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, "%q: %s", id, line)
	}
	b.WriteString("\n}\n")
	return b.Bytes()
}

// compareForm compares a file with what it is to hold, or writes it with -rewrite.
func compareForm(t *testing.T, file string, want []byte) {
	t.Helper()
	if flag.Lookup("rewrite").Value.String() == "true" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(want, got) {
		t.Errorf("%s is not what the stack synthesizes (%v): rewrite it with go test ./infra/stack -rewrite", file, err)
	}
}
