package bootstrap

import "strings"

// windowsUserData writes one PowerShell block: the user's text, then the EKS bootstrap script. Instance store disks are
// left alone.
func windowsUserData(in Input) string {
	var b strings.Builder
	b.WriteString("<powershell>\n")
	if in.UserData != "" {
		b.WriteString(strings.TrimSuffix(in.UserData, "\n") + "\n")
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
