package discovery

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner.sh/pkg/model/instancetypes"
)

// silentServer swallows packets once it has answered with the body, if it has one.
type silentServer struct {
	body  string
	calls int
}

func (s *silentServer) Do(r *http.Request) (*http.Response, error) {
	s.calls++
	if body := s.body; body != "" {
		s.body = ""
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// Who does not answer is asked once and for three seconds, and what it said last holds.
func TestSlowLookUps(t *testing.T) {
	gz, err := instancetypes.Catalog{Schema: instancetypes.Schema, Region: "us-west-2", Types: []instancetypes.Facts{{Name: "m5.large", VCPU: 2, MemoryMiB: 8192}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	region, nobody := "us-west-2", aws.AnonymousCredentials{}
	for name, test := range map[string]struct {
		body  string
		calls int
		run   func(context.Context, *silentServer)
	}{
		"zonal shifts": {"", 1, func(ctx context.Context, server *silentServer) {
			s := &ZonalShifts{UnavailableOfferings: noMarks{}, ARC: arczonalshift.New(arczonalshift.Options{Region: region, HTTPClient: server, Credentials: nobody}),
				ARN: func(context.Context) (string, error) { return "arn", nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
			s.away = map[string]time.Time{"id-a": time.Now().Add(time.Hour)}
			for range 2 { // the second within half a minute
				if got := s.ListShifts(ctx); got == nil || len(got.ZoneIDs) != 1 {
					t.Errorf("shifts %+v, want that of id-a", got)
				}
			}
		}},
		"the catalog": {string(gz), 2, func(ctx context.Context, server *silentServer) {
			s := NewStore(s3.New(s3.Options{Region: region, HTTPClient: server, Credentials: nobody}), "bucket", time.Hour, time.Now)
			for _, wait := range []time.Duration{0, time.Minute} {
				s.checked = s.checked.Add(-wait)
				if c, _, err := s.ReadCatalog(ctx); err != nil || len(c.Types) != 1 {
					t.Errorf("catalog of %d types, error %v, want the one that was stored", len(c.Types), err)
				}
			}
		}},
		"alarms": {"", 1, func(ctx context.Context, server *silentServer) {
			a := Alarms{cloudwatch.New(cloudwatch.Options{Region: region, HTTPClient: server, Credentials: nobody})}
			if got, err := a.ReadAlarms(ctx, []string{"Errors"}); err == nil {
				t.Errorf("alarms %v, want an error", got)
			}
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began, server := time.Now(), &silentServer{body: test.body}
			test.run(ctx, server)
			if took := time.Since(began); took != 3*time.Second || server.calls != test.calls {
				t.Errorf("%s: %d calls in %s, want %d in 3s", name, server.calls, took, test.calls)
			}
		})
	}
}
