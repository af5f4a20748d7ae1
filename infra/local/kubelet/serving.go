package kubelet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// disk is what an instance keeps while it is stopped.
type disk struct {
	serving *x509.Certificate
	until   time.Time          // end of the certificate
	stop    context.CancelFunc // ends the request for another one
}

// ServingCertificate is what the instance's kubelet identifies itself with to the API server; nil while it has none
// that is valid. Logs and exec of its pods fail then, and nothing else.
func (b *Bridge) ServingCertificate(id string) *x509.Certificate {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.disks[id]; d != nil && time.Now().Before(d.until) {
		return d.serving
	}
	return nil
}

// AgeServingCertificate puts the end of the instance's serving certificate back, instead of waiting. The kubelet sees
// that when it boots.
func (b *Bridge) AgeServingCertificate(id string, by time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.disks[id]; d != nil {
		d.until = d.until.Add(-by)
	}
}

// requestCertificate has the kubelet that boots ask for a serving certificate if its disk has none that is valid. The
// node waits for nobody's approval.
func (b *Bridge) requestCertificate(i Instance, behavior Behavior) {
	if b.options.ServingFor == 0 || b.ServingCertificate(i.ID) != nil {
		return
	}
	ctx, cancel := context.WithCancel(b.ctx)
	b.mu.Lock()
	if b.disks[i.ID] == nil {
		b.disks[i.ID] = &disk{}
	}
	b.disks[i.ID].stop = cancel
	b.mu.Unlock()
	b.work.Go(func() {
		defer cancel()
		cert, err := b.requestServing(ctx, i, behavior)
		if err != nil {
			if ctx.Err() == nil {
				b.logLine(i, "has no serving certificate: "+err.Error())
			}
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if d := b.disks[i.ID]; d != nil {
			d.serving, d.until = cert, cert.NotAfter
		}
	})
}

// endServing ends the request of a kubelet that shuts down. A terminated instance has lost its disk.
func (b *Bridge) endServing(i Instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.disks[i.ID]
	if d == nil {
		return
	}
	d.stop()
	if i.State == "terminated" {
		delete(b.disks, i.ID)
	}
}

// requestServing makes a CertificateSigningRequest under the kubelet's own name, has it approved as EKS does, and waits
// for the certificate.
func (b *Bridge) requestServing(ctx context.Context, i Instance, behavior Behavior) (*x509.Certificate, error) {
	kubelet, err := b.asKubelet(i)
	if err != nil {
		return nil, err
	}
	request, err := i.servingRequest(b.options.ServingFor)
	if err != nil {
		return nil, err
	}
	err = retryRequest(ctx, func(ctx context.Context) error {
		made, err := kubelet.CertificatesV1().CertificateSigningRequests().Create(ctx, request, metav1.CreateOptions{})
		if err == nil {
			request = made
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("request a serving certificate: %w", err)
	}
	if !behavior.Unapproved {
		if err := b.approveServing(ctx, i, request.Name); err != nil {
			return nil, err
		}
	}
	requests := kubelet.CertificatesV1().CertificateSigningRequests()
	for waitFor(ctx, retryEvery/5) {
		err := retryRequest(ctx, func(ctx context.Context) (err error) {
			request, err = requests.Get(ctx, request.Name, metav1.GetOptions{})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the request for a serving certificate: %w", err)
		}
		if block, _ := pem.Decode(request.Status.Certificate); block != nil {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, ctx.Err()
}

// servingRequest is what a kubelet with serverTLSBootstrap asks for.
func (i Instance) servingRequest(lasts time.Duration) (*certificatesv1.CertificateSigningRequest, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	template := &x509.CertificateRequest{DNSNames: []string{i.PrivateDNS},
		Subject: pkix.Name{CommonName: i.userName(), Organization: []string{nodesGroup}}}
	if ip := net.ParseIP(i.PrivateIP); ip != nil {
		template.IPAddresses = []net.IP{ip}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate request: %w", err)
	}
	seconds := int32(lasts / time.Second)
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeletServingSignerName, ExpirationSeconds: &seconds,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		},
	}, nil
}

// approveServing is EKS's part: it approves what a node asks for itself, for the names and addresses of its instance.
func (b *Bridge) approveServing(ctx context.Context, i Instance, name string) error {
	requests := b.admin.CertificatesV1().CertificateSigningRequests()
	return retryRequest(ctx, func(ctx context.Context) error {
		r, err := requests.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := i.mayServe(r.Spec); err != nil {
			return err
		}
		r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApproved",
			Message: "the request names the node's instance"})
		_, err = requests.UpdateApproval(ctx, name, r, metav1.UpdateOptions{})
		return err
	})
}

// mayServe refuses a request for names that are not the instance's.
func (i Instance) mayServe(spec certificatesv1.CertificateSigningRequestSpec) error {
	block, _ := pem.Decode(spec.Request)
	if block == nil {
		return errors.New("the request is no PEM")
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	foreign := slices.ContainsFunc(r.IPAddresses, func(ip net.IP) bool { return ip.String() != i.PrivateIP })
	if spec.Username != i.userName() || r.Subject.CommonName != i.userName() || foreign ||
		strings.Join(r.DNSNames, ",") != i.PrivateDNS {
		return fmt.Errorf("%s asks for %s %v %v", spec.Username, r.Subject.CommonName, r.DNSNames, r.IPAddresses)
	}
	return nil
}

// nodesGroup is the group of all kubelets.
const nodesGroup = "system:nodes"

// userName is the kubelet's name.
func (i Instance) userName() string { return "system:node:" + i.PrivateDNS }

// asKubelet is a client under the kubelet's own name.
func (b *Bridge) asKubelet(i Instance) (kubernetes.Interface, error) {
	config := rest.CopyConfig(b.options.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: i.userName(), Groups: []string{nodesGroup}}
	kubelet, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make kubelet's client: %w", err)
	}
	return kubelet, nil
}
