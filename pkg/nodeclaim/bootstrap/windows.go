package bootstrap

import (
	"regexp"
	"strings"
)

// windowsUserData writes one PowerShell block: the user's text, then the EKS bootstrap script. Instance store disks are
// left alone.
func windowsUserData(in Input) string {
	var b strings.Builder
	b.WriteString("<powershell>\n")
	if text := withoutTags(in.UserData); text != "" {
		b.WriteString(strings.TrimSuffix(text, "\n") + "\n")
	}
	b.WriteString(`[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"` + "\n")
	b.WriteString("& $EKSBootstrapScriptFile -EKSClusterName " + powerShellLiteral(in.ClusterName) +
		" -APIServerEndpoint " + powerShellLiteral(in.Endpoint) + " -Base64ClusterCA " +
		powerShellLiteral(in.CABundle) +
		" -KubeletExtraArgs " + powerShellLiteral(kubeletArgs(in)))
	if dns := in.clusterDNS(); len(dns) > 0 {
		b.WriteString(" -DNSClusterIP " + powerShellLiteral(dns[0]))
	}
	b.WriteString("\n</powershell>\n")
	return b.String()
}

// withoutTags is the user's text without the tags that EC2 wants around a script: one pair within another ends at the
// inner end, so that the node would never join.
func withoutTags(text string) string {
	if m := regexp.MustCompile(`(?is)^\s*<powershell>\s*\n?(.*?)\s*</powershell>\s*$`).FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return text
}

// powerShellLiteral makes a PowerShell string in which nothing is expanded. To PowerShell these are all single quotes.
func powerShellLiteral(s string) string {
	var out strings.Builder
	for _, r := range s {
		if strings.ContainsRune("'\u2018\u2019\u201a\u201b", r) {
			out.WriteRune(r)
		}
		out.WriteRune(r)
	}
	return "'" + out.String() + "'"
}
