package kubelet

import (
	"crypto/x509"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A kubelet keeps its serving certificate while its instance is stopped, and asks for another one only when that has run
// out. Its Node is Ready without one that is approved.
func TestServingCertificates(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(o *Options) { o.ServingFor = 45 * 24 * time.Hour })
	i := s.instance(t, "")
	requests := func() (all []certificatesv1.CertificateSigningRequest) {
		list, err := s.api.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(list.Items, func(r certificatesv1.CertificateSigningRequest) bool { return r.Spec.Username != i.userName() })
	}
	restart := func() {
		s.AnnounceInstance(i.in("stopping"))
		s.AnnounceInstance(i.in("stopped"))
		s.awaitNode(t, i.PrivateDNS, "the shutdown taint", func(n *corev1.Node) bool { return slices.Contains(taintKeys(n), shutdownTaint) })
		s.AnnounceInstance(i.in("pending"))
		s.AnnounceInstance(i)
		s.awaitNode(t, i.PrivateDNS, "readiness", func(n *corev1.Node) bool { return isReady(n) && !slices.Contains(taintKeys(n), shutdownTaint) })
	}
	serving := func() *x509.Certificate {
		s.awaitNode(t, i.PrivateDNS, "a serving certificate", func(*corev1.Node) bool { return s.ServingCertificate(i.ID) != nil })
		return s.ServingCertificate(i.ID)
	}
	s.AnnounceInstance(i)
	first := serving()
	if left := time.Until(first.NotAfter); left < 44*24*time.Hour || left > 46*24*time.Hour || first.VerifyHostname(i.PrivateDNS) != nil || first.VerifyHostname(i.PrivateIP) != nil {
		t.Errorf("its certificate lasts %s, for %v %v", left, first.DNSNames, first.IPAddresses)
	}
	restart()
	if s.work.Wait(); serving() != first || len(requests()) != 1 {
		t.Errorf("it asked %d times for a certificate, want once", len(requests()))
	}

	s.SetBehavior(func(Instance) Behavior { return Behavior{Unapproved: true} })
	s.AgeServingCertificate(i.ID, 46*24*time.Hour)
	restart() // it is Ready
	s.awaitNode(t, i.PrivateDNS, "another request", func(*corev1.Node) bool { return len(requests()) == 2 })
	if s.ServingCertificate(i.ID) != nil {
		t.Error("it has a certificate that nobody approved")
	}
	for _, r := range requests() {
		if len(r.Status.Conditions) == 0 {
			if err := s.approveServing(t.Context(), i, r.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if serving() == first {
		t.Error("it has the certificate that ran out")
	}
	other := i
	other.PrivateIP = "10.0.1.8"
	r, err := other.servingRequest(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if r.Spec.Username = i.userName(); i.mayServe(r.Spec) == nil {
		t.Error("the address of another instance is approved")
	}
}
