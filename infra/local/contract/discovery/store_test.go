package discovery

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/providers/discovery"
)

func isolated(r *rig) *discovery.CatalogRefresher {
	return discovery.NewMarket(r.cfg, r.store(), true, r.clock)
}

// read is the catalog, which must always come.
func read(t *testing.T, s *discovery.CatalogStore) (c instancetypes.Catalog, why string) {
	t.Helper()
	c, why, err := s.ReadCatalog(t.Context())
	if err != nil || len(c.Types) != 1219 {
		t.Fatalf("catalog with %d types, error %v", len(c.Types), err)
	}
	return c, why
}

func (r *rig) putObject(t *testing.T, body string) {
	t.Helper()
	client := s3.NewFromConfig(r.cfg, func(o *s3.Options) { o.UsePathStyle = true })
	_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String("catalog.json.gz"), Body: strings.NewReader(body)})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWithoutAnObjectTheSnapshotServes(t *testing.T) {
	for _, test := range []struct {
		name, says string
		prepare    func(t *testing.T, r *rig)
		bucket     string
	}{
		{"no bucket is set", "no bucket is set (setting catalogBucket)", func(*testing.T, *rig) {}, ""},
		{"no such bucket", "NoSuchBucket", func(*testing.T, *rig) {}, "another"},
		{"no object", "bucket demo-catalog holds no catalog.json.gz yet, refresh stores one", func(*testing.T, *rig) {}, bucket},
		{"damaged object", "decode catalog", func(t *testing.T, r *rig) { r.putObject(t, "no gzip") }, bucket},
		{"access denied", "AccessDenied", func(_ *testing.T, r *rig) {
			r.AddFault(awsemulator.Fault{Service: "s3", Action: "GetObject", Kind: awsemulator.FailBefore, Status: 403, Code: "AccessDenied"})
		}, bucket},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := start(t)
			test.prepare(t, r)
			s := discovery.NewStore(s3.NewFromConfig(r.cfg, func(o *s3.Options) { o.UsePathStyle = true }), test.bucket, time.Hour, r.clock)
			_, why := read(t, s)
			if !strings.HasPrefix(why, "using the built-in catalog of us-west-2: ") || !strings.Contains(why, test.says) {
				t.Errorf("why is %q, want it to say %q", why, test.says)
			}
		})
	}
}

// One that nobody may read, such as under a key of before, is replaced too: waiting would not help. One that S3 does not
// hand out just now is not.
func TestADamagedObjectIsReplacedAndOneThatCannotBeReadNowIsNot(t *testing.T) {
	r := start(t)
	r.putObject(t, "no gzip")
	r.refresh(t)
	if _, why := read(t, r.store()); why != "" {
		t.Errorf("after a refresh: %s", why)
	}
	for _, c := range []struct {
		status int
		code   string
		puts   int
	}{{403, "AccessDenied", 1}, {503, "SlowDown", 0}} {
		r.AddFault(awsemulator.Fault{Service: "s3", Action: "GetObject", Kind: awsemulator.FailBefore, Status: c.status, Code: c.code})
		r.made()
		_, err := r.market().Refresh(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.code) {
			t.Errorf("error is %v, want %s", err, c.code)
		}
		if n := r.made("s3:PutObject")["s3:PutObject"]; n != c.puts {
			t.Errorf("after %s the object was replaced %d times, want %d", c.code, n, c.puts)
		}
		r.ClearFaults()
	}
}

func TestAWarmProcessAsksSeldomAndKeepsWhatItHas(t *testing.T) {
	r := start(t)
	r.refresh(t)
	r.made()
	s := r.store()
	for range 3 {
		read(t, s)
	}
	if n := r.made("s3:GetObject")["s3:GetObject"]; n != 1 {
		t.Errorf("%d reads at one time, want 1", n)
	}
	r.now = r.now.Add(31 * time.Second)
	r.SetSpotPrice("m5.large", "us-west-2a", 0.1)
	if c, why := read(t, s); why != "" || price(c) == 0.1 {
		t.Errorf("the price is %v before it was stored, why %q", price(c), why)
	}
	if calls := r.LoggedCalls(); len(calls) != 1 || calls[0].Status != 304 {
		t.Errorf("an object that did not change was read again: %+v", calls)
	}
	r.refresh(t)
	r.now = r.now.Add(31 * time.Second)
	if c, _ := read(t, s); price(c) != 0.1 {
		t.Errorf("the price is %v after it was stored, want 0.1", price(c))
	}
	r.now = r.now.Add(24*time.Hour + time.Minute)
	if _, why := read(t, s); why != "the stored catalog is 24h2m0s old, is refresh running?" {
		t.Errorf("why is %q", why)
	}
	r.now = r.now.Add(31 * time.Second)
	r.AddFault(awsemulator.Fault{Service: "s3", Kind: awsemulator.Throttle})
	if c, why := read(t, s); price(c) != 0.1 || !strings.HasPrefix(why, "using the catalog read before: get catalog from bucket demo-catalog") {
		t.Errorf("the price is %v, why %q", price(c), why)
	}
}

func price(c instancetypes.Catalog) float64 {
	f, _ := c.Find("m5.large")
	return f.SpotUSD["us-west-2a"]
}
