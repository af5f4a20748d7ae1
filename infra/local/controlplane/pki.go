package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// identity is a certificate with its key.
type identity struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// pki is every certificate of one plane. It lives as long as the plane.
type pki struct {
	dir string
	ca  identity
}

// newPKI makes the authorities, the API server's own certificates and the service account key pair in dir. They are
// ECDSA P-256, a matter of milliseconds.
func newPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	ca, err := newAuthority("kubernetes")
	if err != nil {
		return nil, err
	}
	frontProxy, err := newAuthority("front-proxy")
	if err != nil {
		return nil, err
	}
	serving, err := ca.signTemplate(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local",
		},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(serviceIP)},
	})
	if err != nil {
		return nil, err
	}
	proxyClient, err := frontProxy.issueClient("front-proxy-client", "")
	if err != nil {
		return nil, err
	}
	accounts, err := newAuthority("service-accounts") // only its key pair is used
	if err != nil {
		return nil, err
	}
	for name, id := range map[string]identity{
		"ca": ca, "front-proxy-ca": frontProxy, "apiserver": serving, "front-proxy-client": proxyClient,
		"service-accounts": accounts,
	} {
		if err := id.writeFiles(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return &pki{dir: dir, ca: ca}, nil
}

func newAuthority(name string) (identity, error) {
	return identity{}.signTemplate(&x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	})
}

// issueClient issues a certificate that Kubernetes reads as the user and, unless empty, the group.
func (i identity) issueClient(user, group string) (identity, error) {
	subject := pkix.Name{CommonName: user}
	if group != "" {
		subject.Organization = []string{group}
	}
	return i.signTemplate(&x509.Certificate{Subject: subject,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// signTemplate completes and signs the template. The zero identity signs with the new key itself.
func (i identity) signTemplate(template *x509.Certificate) (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("make key of %s: %w", template.Subject.CommonName, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return identity{}, fmt.Errorf("make serial of %s: %w", template.Subject.CommonName, err)
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().AddDate(1, 0, 0)
	template.KeyUsage |= x509.KeyUsageDigitalSignature
	parent, signer := template, key
	if i.cert != nil {
		parent, signer = i.cert, i.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return identity{}, fmt.Errorf("sign %s: %w", template.Subject.CommonName, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return identity{}, fmt.Errorf("parse %s: %w", template.Subject.CommonName, err)
	}
	return identity{cert: cert, key: key}, nil
}

func (i identity) certPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.cert.Raw})
}

func (i identity) keyPEM() ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(i.key)
	if err != nil {
		return nil, fmt.Errorf("encode key of %s: %w", i.cert.Subject.CommonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// writeFiles makes base.crt, base.key and base.pub, all PEM.
func (i identity) writeFiles(base string) error {
	key, err := i.keyPEM()
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&i.key.PublicKey)
	if err != nil {
		return fmt.Errorf("encode public key of %s: %w", i.cert.Subject.CommonName, err)
	}
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	for ext, data := range map[string][]byte{".crt": i.certPEM(), ".key": key, ".pub": publicPEM} {
		if err := os.WriteFile(base+ext, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
