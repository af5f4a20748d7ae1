package bootstrap

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/lists"
)

// MaxBytes is the largest user data that EC2 takes, in bytes before base64.
const MaxBytes = 16384

// Input is everything that user data is made of.
type Input struct {
	Family       string // of the image, one of the AMIFamily constants of the EC2NodeClass API
	ImageVersion string // of the image, or a name that ends in it; for Bottlerocket only, empty when unknown
	ClusterName  string
	Endpoint     string           // URL of the API server
	CABundle     string           // base64
	DNSAddress   string           // of the cluster's DNS service; empty when unknown
	ServiceCIDR  string           // needed by AL2023 only
	Node         NodeRegistration // startup taints included
	MaxPods      int64            // used unless Kubelet sets its own
	Kubelet      awsv1.KubeletConfiguration
	UserData     string // the user's text, in the form the family wants
	RAID0        bool   // join the instance store disks and put what pods write there
}

// Reasons of an Error.
const (
	ReasonTooLarge    = awsv1.ReasonUserDataSizeLimitExceeded
	ReasonServiceCIDR = awsv1.ReasonClusterCIDRResolutionFailed
	ReasonMalformed   = "UserDataMalformed"
	ReasonFamily      = "UnsupportedAMIFamily"

	// ReasonRegistration is about a claim; the others are about its class or the cluster.
	ReasonRegistration = "InvalidNodeRegistration"
)

// Error says why no user data can be made. Only a change of the EC2NodeClass, of the cluster or, for
// ReasonRegistration, of the claim helps.
type Error struct {
	Reason  string // one word, for a condition
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return "user data: " + e.Message }

// UserData returns the user data, base64 encoded; it is empty when a Custom class has none. The error is an *Error.
func UserData(in Input) (string, error) {
	text, err := RenderUserData(in)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString([]byte(text)), nil
}

// RenderUserData returns the user data as it is before encoding. The error is an *Error.
func RenderUserData(in Input) (string, error) {
	if err := checkKubelet(in); err != nil {
		return "", err
	}
	var text string
	var err error
	switch {
	case in.Family == awsv1.AMIFamilyAL2023:
		text, err = al2023UserData(in)
	case in.Family == awsv1.AMIFamilyAL2:
		text, err = al2UserData(in)
	case in.Family == awsv1.AMIFamilyBottlerocket:
		text, err = bottlerocketUserData(in)
	case in.Family == awsv1.AMIFamilyCustom:
		text = in.UserData
	case strings.HasPrefix(in.Family, "Windows"):
		text = windowsUserData(in)
	default:
		return "", &Error{Reason: ReasonFamily, Message: fmt.Sprintf("amiFamily %q is unknown", in.Family)}
	}
	if err != nil {
		return "", err
	}
	if len(text) > MaxBytes {
		return "", &Error{Reason: ReasonTooLarge, Message: fmt.Sprintf(
			"it has %d bytes with what the node needs, EC2 takes at most %d; shorten spec.userData", len(text),
			MaxBytes)}
	}
	return text, nil
}

// maxPods is the user's number, else that of the instance type.
func (in Input) maxPods() int64 {
	if in.Kubelet.MaxPods != nil {
		return int64(*in.Kubelet.MaxPods)
	}
	return in.MaxPods
}

// clusterDNS lists the DNS servers of pods: the user's, else the cluster's if it is known.
func (in Input) clusterDNS() []string {
	if len(in.Kubelet.ClusterDNS) > 0 || in.DNSAddress == "" {
		return in.Kubelet.ClusterDNS
	}
	return []string{in.DNSAddress}
}

// kubeletMaySet reports whether a kubelet may set the label on its own Node. It refuses to start with a label of the
// Kubernetes domains, node-restriction.kubernetes.io among them, that is not its own. Region and zone come from the
// cloud provider.
func kubeletMaySet(key string) bool {
	domain, name, found := strings.Cut(key, "/")
	if !found {
		return true
	}
	switch {
	case isSubdomain(domain, "kubelet.kubernetes.io"), isSubdomain(domain, "node.kubernetes.io"):
		return true
	case domain == "kubernetes.io":
		return name == "arch" || name == "os" || name == "hostname"
	}
	return !isSubdomain(domain, "kubernetes.io") && !isSubdomain(domain, "k8s.io")
}

// isSubdomain reports whether name is the domain or one under it.
func isSubdomain(name, domain string) bool {
	return name == domain || strings.HasSuffix(name, "."+domain)
}

// joinPairs joins the entries of m, sorted, with sep between key and value.
func joinPairs(m map[string]string, sep string) string {
	out := lists.Of(slices.Sorted(maps.Keys(m)), func(k string) string { return k + sep + m[k] })
	return strings.Join(out, ",")
}

func malformedError(format string, args ...any) error {
	return &Error{Reason: ReasonMalformed, Message: fmt.Sprintf(format, args...)}
}
