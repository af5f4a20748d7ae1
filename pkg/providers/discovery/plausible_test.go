package discovery

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner.sh/pkg/model/instancetypes"
)

// Of a catalog that somebody else wrote, figures that cannot be true are told, and those of the built-in one hold.
func TestAPoisonedCatalog(t *testing.T) {
	gz, err := instancetypes.Catalog{Schema: instancetypes.Schema, Region: "us-west-2", Time: time.Now(), Types: []instancetypes.Facts{
		{Name: "m5.large", VCPU: 2, MemoryMiB: 8192, OnDemandUSD: 0.096}, {Name: "m7i.48xlarge", VCPU: 192, MemoryMiB: 786432, OnDemandUSD: 0.00001}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(s3.New(s3.Options{Region: "us-west-2", HTTPClient: &silentServer{body: string(gz)}, Credentials: aws.AnonymousCredentials{}}), "bucket", time.Hour, time.Now)
	c, why, err := s.ReadCatalog(t.Context())
	if err != nil || len(c.Types) != 2 || c.Types[0].OnDemandUSD != 0.096 || c.Types[1].OnDemandUSD != 9.6768 {
		t.Errorf("catalog %+v, error %v, want m5.large at 0.096 and m7i.48xlarge at 9.6768", c.Types, err)
	}
	if !strings.HasPrefix(why, "1 types of the stored catalog have figures that cannot be true, who may write to the bucket? m7i.48xlarge: an on-demand price of 1e-05 USD/h") {
		t.Errorf("said %q", why)
	}
}

// objectServer answers with what it holds, under an ETag of its own for each.
type objectServer struct {
	body string
	etag int
}

func (s *objectServer) Do(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		s.put(string(body))
	}
	answer := s.body
	if r.Method == http.MethodPut {
		answer = ""
	}
	header := http.Header{"Etag": {fmt.Sprintf("%q", fmt.Sprint(s.etag))}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

func (s *objectServer) put(body string) { s.body, s.etag = body, s.etag+1 }

// A price that moves too far at once is told and not used until a later catalog confirms it; and who wrote a catalog
// knows when another is there.
func TestACatalogOfSomebodyElse(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	server := &objectServer{}
	s := NewStore(s3.New(s3.Options{Region: "us-west-2", HTTPClient: server, Credentials: aws.AnonymousCredentials{}}), "bucket", 24*time.Hour, func() time.Time { return now })
	of := func(usd float64) instancetypes.Catalog {
		return instancetypes.Catalog{Schema: instancetypes.Schema, Region: "us-west-2", Time: now, Types: []instancetypes.Facts{{Name: "m5.large", VCPU: 2, MemoryMiB: 8192, OnDemandUSD: usd}}}
	}
	read := func(usd float64, told string) {
		t.Helper()
		c, why, err := s.ReadCatalog(t.Context())
		if err != nil || c.Types[0].OnDemandUSD != usd || !strings.Contains(why, told) || told == "" && why != "" {
			t.Errorf("at %s: %v USD/h, said %q, %v; want %v and %q", now.Format(time.TimeOnly), c.Types[0].OnDemandUSD, why, err, usd, told)
		}
	}
	if err := s.PutCatalog(t.Context(), of(0.096)); err != nil {
		t.Fatal(err)
	}
	read(0.096, "")
	if s.isForeign() {
		t.Error("its own catalog is somebody else's")
	}
	for range 2 {
		now = now.Add(7 * time.Minute)
		gz, err := of(0.02).Encode()
		if err != nil {
			t.Fatal(err)
		}
		server.put(string(gz))
		if stored, err := s.ReadStored(t.Context()); err != nil || stored.Types[0].OnDemandUSD != 0.02 || !s.isForeign() {
			t.Errorf("refresh reads %v, foreign %t, %v", stored.Types[0].OnDemandUSD, s.isForeign(), err)
		}
		if s.etag == `"2"` {
			read(0.096, "1 prices of the stored catalog moved more than threefold at once, the old ones hold until refresh says so again: m5.large on-demand at 0.02 USD/h")
		}
	}
	read(0.02, "")
	now = now.Add(-time.Hour)
	read(0.02, "was written 1h0m0s from now, whose clock is wrong?")
}
