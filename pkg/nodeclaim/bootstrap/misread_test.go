package bootstrap_test

import (
	"strings"
	"testing"

	"joiner.sh/pkg/nodeclaim/bootstrap"
)

func TestMisreadUserData(t *testing.T) {
	const (
		nodeConfig = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: {maxPods: 20}}}\n"
		message    = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: "
		asMIME     = message + "application/node.eks.aws\n\n" + nodeConfig + "\n--//--\n"
		cloud      = "runcmd:\n- echo hi\n"
		script     = "#!/bin/bash\n/etc/eks/bootstrap.sh demo --kubelet-extra-args '--node-labels=a=b'\n"
	)
	for _, c := range []struct{ family, text, want string }{
		{"AL2", nodeConfig, "AL2 runs it as a shell script"},
		{"AL2", "---\n" + nodeConfig, "AL2 runs it as a shell script"},
		{"AL2", asMIME, "images of AL2 do not read the part of type application/node.eks.aws"},
		{"AL2", message + "text/x-shellscript\n\n" + nodeConfig + "\n--//--\n", "AL2 runs it as a shell script"},
		{"AL2", cloud, "begin it with #cloud-config"},
		{"AL2", "#cloud-config\n" + cloud, ""},
		{"AL2", message + "text/cloud-config\n\n" + cloud + "\n--//--\n", ""},
		{"AL2", script, ""},
		{"AL2", `echo "note: hi"`, ""},
		{"AL2", message, ""}, // UserData refuses it
		{"AL2", " \n", ""},
		{"AL2023", nodeConfig, ""},
		{"AL2023", asMIME, ""},
		{"AL2023", cloud, "begin it with #cloud-config"},
		{"AL2023", "#cloud-config\n" + cloud, ""},
		{"AL2023", "maxPods: 20\n", "it is YAML that is no NodeConfig"},
		{"AL2023", "# nothing\n", ""},
		{"AL2023", script, "/etc/eks/bootstrap.sh, which images of AL2023 do not have"},
		{"AL2023", "#!/bin/bash\necho hi\n", ""},
		{"Windows2022", "#!/bin/bash\necho hi\n", "Windows2022 runs it as PowerShell"},
		{"Windows2022", nodeConfig, "Windows2022 runs it as PowerShell"},
		{"Windows2022", "Write-Host hi", ""},
		{"Bottlerocket", nodeConfig, ""}, // UserData refuses what is no TOML
		{"Custom", nodeConfig, ""},
	} {
		got := bootstrap.MisreadUserData(c.family, c.text)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s with %q: %q, want %q", c.family, c.text, got, c.want)
		}
	}
}
