package main

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfigs writes one kubeconfig per user of the API server, the authority's certificate, and the
// configuration of the token webhook if there is one.
func (r *run) writeKubeconfigs(p *pki) error {
	if err := os.WriteFile(r.filePath("ca.crt"), p.ca.certPEM(), 0o600); err != nil {
		return fmt.Errorf("write authority: %w", err)
	}
	users := []struct{ name, user, group string }{
		{"admin", "kubernetes-admin", "system:masters"},
		{"kwok", "kwok", "system:masters"},
		{"scheduler", "system:kube-scheduler", ""},
		{"controller-manager", "system:kube-controller-manager", ""},
	}
	for _, u := range users {
		id, err := p.ca.issueClient(u.user, u.group)
		if err != nil {
			return err
		}
		key, err := id.keyPEM()
		if err != nil {
			return err
		}
		cluster := &clientcmdapi.Cluster{Server: r.serverURL(), CertificateAuthorityData: p.ca.certPEM()}
		auth := &clientcmdapi.AuthInfo{ClientCertificateData: id.certPEM(), ClientKeyData: key}
		if err := writeKubeconfig(r.kubeconfigPath(u.name), cluster, auth); err != nil {
			return err
		}
	}
	if r.options.tokenWebhook == "" {
		return nil
	}
	return writeKubeconfig(r.kubeconfigPath("token-webhook"), &clientcmdapi.Cluster{Server: r.options.tokenWebhook},
		&clientcmdapi.AuthInfo{})
}

func writeKubeconfig(file string, cluster *clientcmdapi.Cluster, auth *clientcmdapi.AuthInfo) error {
	const name = "joiner-local"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = cluster
	config.AuthInfos[name] = auth
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
