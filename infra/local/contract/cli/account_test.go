package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudtest"
	"joiner.sh/pkg/cli/status"
	"joiner.sh/pkg/install"
	"joiner.sh/pkg/model/findings"
)

// account is an emulated account that the environment points at.
func account(t *testing.T) *awsemulator.Cloud {
	t.Helper()
	c, url := cloudtest.Start(t, awsemulator.Options{})
	k := c.IssueCredentials("somebody", "terminal", 0)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": url, "AWS_REGION": "us-west-2", "AWS_ACCESS_KEY_ID": k.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY": k.SecretAccessKey, "AWS_SESSION_TOKEN": k.SessionToken, "AWS_MAX_ATTEMPTS": "1"} {
		t.Setenv(name, value)
	}
	return c
}

// finding is one as the JSON of doctor has it.
type finding struct {
	Level             findings.Level
	Check, What, Mend string
}

// asked are the findings about the cluster demo and its account.
func (e env) asked(t *testing.T) []finding {
	t.Helper()
	code, out, progress := e.joiner("doctor", "--cluster", "demo", "-o", "json")
	var all []finding
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != 0 && code != 3 {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, progress)
	}
	return all
}

func has(all []finding, level findings.Level, check, words string) bool {
	return slices.ContainsFunc(all, func(x finding) bool {
		return x.Level == level && x.Check == check && strings.Contains(x.What, words)
	})
}

// wantFinding fails the test unless a finding of that level and check holds the words.
func wantFinding(t *testing.T, all []finding, level findings.Level, check, words string) {
	t.Helper()
	if !has(all, level, check, words) {
		t.Errorf("%s %s %q is not among %+v", level, check, words, all)
	}
}

// What the account lacks is told with how to mend it, and is fine once it is mended.
func TestDoctorLooksIntoTheAccount(t *testing.T) {
	e := newEnv(t)
	e.pool(t, "asked", "m5.large") // its role is demo
	c := account(t)
	c.RemoveRole("AWSServiceRoleForEC2Spot")
	c.SetClusterAccess("CONFIG_MAP", false)
	c.SetQuota("L-34B43A08", 0)
	c.SetDefaultEncryption(true, "arn:aws:kms:us-west-2:111122223333:key/1234abcd")
	c.SetConcurrency(10)
	all := e.asked(t)
	for _, want := range []struct {
		level        findings.Level
		check, words string
	}{
		{findings.Broken, "EKS", "authentication mode CONFIG_MAP"},
		{findings.Broken, "endpoint", "no public endpoint"},
		{findings.Broken, "access entries", "no access entry names the group joiner-provision"},
		{findings.Broken, "access entries", "the role demo of EC2NodeClass asked has none"},
		{findings.Warning, "spot role", "no AWSServiceRoleForEC2Spot"},
		{findings.Warning, "encryption", "encrypted with the key arn:aws:kms:us-west-2:111122223333:key/1234abcd"},
		{findings.Warning, "functions", "the stack is not deployed for cluster demo"},
		{findings.Warning, "Lambda", "the account may run 10 invocations at once, 10 of them are not reserved and 10 must stay so: the stack, which reserves 114 by default"},
		{findings.Warning, "quotas", "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests: 0 of 0 vCPU are in use"},
	} {
		wantFinding(t, all, want.level, want.check, want.words)
	}

	c.SetClusterAccess("API", true)
	c.PutRole("aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot")
	c.PutAccessEntry(awsemulator.AccessEntry{PrincipalARN: "arn:aws:iam::111122223333:role/demo", Type: "EC2_LINUX"})
	for _, g := range []string{install.GroupProvision, install.GroupLifecycle, install.GroupDisrupt, install.GroupRefresh, install.GroupSpotInterruption,
		install.GroupReservationInterruption, install.GroupRebalance, install.GroupScheduledChange, install.GroupStateChange} {
		c.PutAccessEntry(awsemulator.AccessEntry{PrincipalARN: "arn:aws:iam::111122223333:role/" + g, KubernetesGroups: []string{g}})
	}
	c.SetQuota("L-34B43A08", 64)
	c.SetDefaultEncryption(true, "")
	c.SetConcurrency(1000)
	for _, f := range []string{"provision", "lifecycle", "disrupt", "refresh", "spotinterruption", "reservationinterruption", "rebalance", "scheduledchange", "statechange", "preflight", "setup"} {
		c.PutFunction(awsemulator.DescribedFunction{Name: "joiner-demo-" + f, State: "Active", Environment: map[string]string{"MODE": "act"}, Reserved: map[string]int{"spotinterruption": 70, "reservationinterruption": 60}[f]})
	}
	all = e.asked(t)
	for _, check := range []string{"EKS", "access entries", "spot role", "encryption", "functions", "quotas"} {
		if !has(all, findings.Fine, check, "") {
			t.Errorf("%s is not fine: %+v", check, all)
		}
	}

	if !has(all, findings.Fine, "Lambda", "1000 invocations at once, 870 of them are not reserved, and 60 for each") {
		t.Errorf("what is reserved for notices is not told: %+v", all)
	}

	c.PutFunction(awsemulator.DescribedFunction{Name: "joiner-demo-disrupt", State: "Failed", Reason: "the VPC has no addresses"})
	if all = e.asked(t); !has(all, findings.Broken, "functions", "joiner-demo-disrupt is Failed: the VPC has no addresses") || has(all, findings.Fine, "functions", "") {
		t.Errorf("a function that failed is not told: %+v", all)
	}
}

// Status names the version and the age of each function, of a release that does not say its own too.
func TestStatusNamesTheFunctions(t *testing.T) {
	e := newEnv(t)
	c := account(t)
	hour := time.Now().Add(-time.Hour)
	c.PutFunction(awsemulator.DescribedFunction{Name: "joiner-demo-provision", Changed: hour, Description: "Joiner 1.0.0-rc.2 provision: launches nodes"})
	c.PutFunction(awsemulator.DescribedFunction{Name: "joiner-demo-lifecycle", Changed: hour, Description: "Joiner lifecycle: ends nodes"})
	code, out, progress := e.joiner("status", "--cluster", "demo", "-o", "json")
	var v status.View
	if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, progress)
	}
	got := map[string]string{}
	for _, f := range v.Functions {
		got[strings.TrimPrefix(f.Name, "joiner-demo-")] = fmt.Sprintf("%q %s %s", f.Version, f.Age.Round(time.Hour), f.State)
	}
	if len(got) != 11 || got["provision"] != `"1.0.0-rc.2" 1h0m0s Active` || got["lifecycle"] != `"" 1h0m0s Active` || got["setup"] != `"" 0s missing` {
		t.Errorf("functions %v", got)
	}
	if code, out, _ := e.joiner("status", "--cluster", "demo"); code != 0 || !strings.Contains(out, "joiner-demo-lifecycle") || !strings.Contains(out, "not said") {
		t.Errorf("exit %d: %s", code, out)
	}
}
