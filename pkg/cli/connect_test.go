package cli

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eks"
)

// Amazon EKS lets few reads a second through: whoever asks for many entries is throttled, and gets them all the same.
func TestAThrottledReadIsAskedAgain(t *testing.T) {
	const throttled = 3 // one more than the SDK's own attempts allow
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if asked.Add(1) <= throttled {
			w.Header().Set("X-Amzn-Errortype", "ThrottlingException")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"message":"Rate exceeded"}`))
			return
		}
		_, _ = w.Write([]byte(`{"accessEntries":[]}`))
	}))
	defer s.Close()
	t.Setenv("AWS_ENDPOINT_URL", s.URL)
	t.Setenv("AWS_REGION", "us-west-2")
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	cfg, err := loadAWSConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if e := entryFacts(t.Context(), eks.NewFromConfig(cfg), "demo"); e.Unknown != "" || asked.Load() != throttled+1 {
		t.Errorf("asked %d times: %s", asked.Load(), e.Unknown)
	}
}
