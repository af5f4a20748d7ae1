package app

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"joiner.sh/pkg/install/preflight"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/settings"
)

// account notes what is asked of AWS, and answers for EKS and S3.
type account struct {
	mu     sync.Mutex
	asked  []string
	bundle string // that EKS tells
	stored string // in the bucket
}

func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r.Method+" "+r.URL.Path)
	switch {
	case strings.HasPrefix(r.URL.Path, "/clusters/"):
		_ = json.NewEncoder(w).Encode(map[string]any{"cluster": map[string]any{"name": "demo", "endpoint": "https://api",
			"certificateAuthority": map[string]string{"data": a.bundle}}})
	case r.Method == http.MethodPut:
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		a.stored = string(body)
	case a.stored == "":
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("<Error><Code>AccessDenied</Code></Error>"))
	default:
		_, _ = w.Write([]byte(a.stored))
	}
}

func (a *account) forget() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.asked
	a.asked = nil
	return out
}

func certificate(text string) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(text)}))
}

func startAccount(t *testing.T) *account {
	t.Helper()
	a := &account{}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	api := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(api.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": s.URL, "AWS_REGION": "us-west-2", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s",
		"AWS_EC2_METADATA_DISABLED": "true", "CLUSTER_NAME": "demo", "CATALOG_BUCKET": "catalog", "CLUSTER_ENDPOINT": api.URL,
		"CLUSTER_CA_BUNDLE": base64.StdEncoding.EncodeToString(ca), "SERVICE_CIDR": "10.100.0.0/16"} {
		t.Setenv(name, value)
	}
	return a
}

// TestNobodyIsAskedAtStart: hundreds of functions may start at once, and EKS throttles whoever asks it often.
func TestNobodyIsAskedAtStart(t *testing.T) {
	aws := startAccount(t)
	a, err := FromEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info := a.cluster.read(); info.ServiceCIDR != "10.100.0.0/16" || info.Endpoint == "" || len(aws.forget()) > 0 {
		t.Errorf("cluster %+v; AWS was asked %v", info, aws.asked)
	}
	t.Setenv("CLUSTER_ENDPOINT", "")
	if _, err := FromEnv(t.Context()); err == nil || !strings.Contains(err.Error(), "deploy it again") {
		t.Errorf("without an endpoint: %v, want what to do", err)
	}
}

// TestOnlyRefreshAsksEKSWhoseCertificatesToBelieve, and the others read what it found.
func TestOnlyRefreshAsksEKSWhoseCertificatesToBelieve(t *testing.T) {
	aws := startAccount(t)
	aws.bundle = certificate("new")
	notice, err := FromEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if ca, err := notice.renewAuthority(t.Context()); err != nil || ca != nil {
		t.Errorf("before refresh found one out: %q, %v", ca, err)
	}
	refresh, err := FromEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	refresh.findAuthority = func(ctx context.Context) (string, error) { return describeAuthority(ctx, refresh) }
	for _, a := range []*App{refresh, notice} {
		ca, err := a.renewAuthority(t.Context())
		if block, _ := pem.Decode(ca); err != nil || block == nil || string(block.Bytes) != "new" || a.cluster.read().CABundle != aws.bundle {
			t.Errorf("%q, %v; nodes would get %s", ca, err, a.cluster.read().CABundle)
		}
	}
	if got, want := strings.Join(aws.forget(), ", "), "GET /catalog/cluster-ca, GET /clusters/demo, PUT /catalog/cluster-ca, GET /catalog/cluster-ca"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	if ca, err := refresh.renewAuthority(t.Context()); err != nil || ca != nil {
		t.Errorf("once more: %q, %v, want nothing new", ca, err)
	}
}

// TestTheARNOfTheCluster is that of the account, partition and region of the function which runs.
func TestTheARNOfTheCluster(t *testing.T) {
	a := &App{set: settings.Values{ClusterName: "demo"}}
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{InvokedFunctionArn: "arn:aws-cn:lambda:cn-north-1:111122223333:function:joiner-demo-provision:live"})
	if got, err := clusterARN(ctx, a.set.ClusterName); got != "arn:aws-cn:eks:cn-north-1:111122223333:cluster/demo" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := clusterARN(t.Context(), a.set.ClusterName); err == nil {
		t.Error("outside of Lambda there is no account to make it of")
	}
}

// TestWhatThePreflightTells: the fingerprint changes with anything that the functions are told, and nothing is told that
// Lambda would refuse in an environment.
func TestWhatThePreflightTells(t *testing.T) {
	one := preflight.Cluster{Endpoint: "https://api", CABundle: certificate("ca"), ServiceCIDR: "10.100.0.0/16"}
	prints, reaches := map[any]bool{}, map[any]bool{}
	for _, c := range []preflight.Cluster{one, {Endpoint: "https://b", CABundle: one.CABundle, ServiceCIDR: one.ServiceCIDR},
		{Endpoint: one.Endpoint, CABundle: certificate("b"), ServiceCIDR: one.ServiceCIDR}, {Endpoint: one.Endpoint, CABundle: one.CABundle, ServiceCIDR: "10.101.0.0/16"}} {
		got, err := stackAttributes(c, 1024)
		if err != nil || got["Endpoint"] != c.Endpoint || got["CABundle"] != c.CABundle || got["ServiceCIDR"] != c.ServiceCIDR || prints[got["Fingerprint"]] || reaches[got["Reach"]] {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
		prints[got["Fingerprint"]], reaches[got["Reach"]] = true, true
	}
	got, err := stackAttributes(one, 1769)
	if err != nil || got["FunctionMemory"] != "1769" || got["MemoryLimit"] != "1150MiB" || prints[got["Fingerprint"]] || !reaches[got["Reach"]] {
		t.Errorf("with other memory: %v, %v", got, err)
	}
	one.CABundle = strings.Repeat("A", maxCABundle+1)
	if _, err := stackAttributes(one, 512); err == nil || !strings.Contains(err.Error(), "clusterCABundle") {
		t.Errorf("an authority that is too long: %v", err)
	}
}

// TestTheVersionAfterAnUpgrade: refresh looks for images of the version that the control plane has now, others take
// what they have read.
func TestTheVersionAfterAnUpgrade(t *testing.T) {
	startAccount(t)
	minor, asked := "35", 0
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			http.NotFound(w, r)
			return
		}
		asked++
		_ = json.NewEncoder(w).Encode(map[string]string{"major": "1", "minor": minor})
	}))
	t.Cleanup(api.Close)
	t.Setenv("CLUSTER_ENDPOINT", api.URL)
	t.Setenv("CLUSTER_CA_BUNDLE", base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})))
	a, err := FromEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now := func(ctx context.Context) (launch.Cluster, error) { return clusterInfoNow(ctx, a) }
	for _, step := range []struct {
		minor string
		read  func(context.Context) (launch.Cluster, error)
		want  string
	}{{"35", now, "1.35"}, {"36", a.clusterInfo, "1.35"}, {"36", now, "1.36"}, {"36", a.clusterInfo, "1.36"}} {
		minor = step.minor
		if info, err := step.read(t.Context()); err != nil || info.Version != step.want {
			t.Errorf("version %s, error %v, want %s", info.Version, err, step.want)
		}
	}
	asked = 0
	if err := a.Refresh(t.Context(), nil); err == nil || asked != 1 {
		t.Errorf("refresh asked %d times for the version, want once; error %v, want one of a cluster that has nothing else", asked, err)
	}
}
