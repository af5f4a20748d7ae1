package bootstrap

import "strings"

// windows writes one PowerShell block: the user's text, then the EKS bootstrap script. Instance store disks are left alone.
func windows(in Input) string {
	var b strings.Builder
	b.WriteString("<powershell>\n")
	if in.UserData != "" {
		b.WriteString(strings.TrimSuffix(in.UserData, "\n") + "\n")
	}
	b.WriteString(`[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"` + "\n")
	b.WriteString("& $EKSBootstrapScriptFile -EKSClusterName " + literal(in.ClusterName) +
		" -APIServerEndpoint " + literal(in.Endpoint) + " -Base64ClusterCA " + literal(in.CABundle) +
		" -KubeletExtraArgs " + literal(kubeletArgs(in)))
	if dns := in.dns(); len(dns) > 0 {
		b.WriteString(" -DNSClusterIP " + literal(dns[0]))
	}
	b.WriteString("\n</powershell>\n")
	return b.String()
}

// literal makes a PowerShell string in which nothing is expanded.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
