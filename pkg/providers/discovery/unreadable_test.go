package discovery

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// lockedBucket is S3 with an object that it does not hand out, until another is put in its place, and EC2 that tells one
// spot price and nothing else.
type lockedBucket struct {
	code   string
	status int
	puts   int
}

func (b *lockedBucket) Do(r *http.Request) (*http.Response, error) {
	status, text := http.StatusOK, ""
	switch {
	case r.Method == http.MethodPut:
		b.puts++
	case r.Method == http.MethodGet:
		status, text = b.status, "<Error><Code>"+b.code+"</Code><Message>m</Message></Error>"
	default:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, err
		}
		if text = "<Response></Response>"; form.Get("Action") == "DescribeSpotPriceHistory" {
			text = `<Response><spotPriceHistorySet><item><instanceType>m5.large</instanceType><availabilityZone>us-west-2a</availabilityZone><spotPrice>0.04</spotPrice><timestamp>2026-11-20T10:00:00.000Z</timestamp></item></spotPriceHistorySet></Response>`
		}
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// A catalog that nobody may read any more, because it is encrypted by a key of before or that key is disabled, is made
// anew: else prices would stay for ever what they are in the binary, and in most regions nothing could be launched. Of
// one that S3 cannot hand out just now nobody knows what is in it.
func TestACatalogThatNobodyMayRead(t *testing.T) {
	for code, c := range map[string]struct{ status, puts int }{
		"AccessDenied": {403, 1}, "KMS.DisabledException": {400, 1}, "KMS.KMSInvalidStateException": {400, 1},
		"InternalError": {500, 0}, "SlowDown": {503, 0}, "KMS.ThrottlingException": {400, 0},
	} {
		b := &lockedBucket{code: code, status: c.status}
		nobody := aws.AnonymousCredentials{}
		store := NewStore(s3.New(s3.Options{Region: "us-west-2", HTTPClient: b, Retryer: aws.NopRetryer{}, Credentials: nobody}), "bucket", time.Hour, time.Now)
		r := &CatalogRefresher{store: store, region: "us-west-2", isolated: true, now: time.Now,
			ec2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: b, Retryer: aws.NopRetryer{}, Credentials: nobody})}
		did, err := r.Refresh(t.Context())
		if b.puts != c.puts || (did != "") != (c.puts > 0) {
			t.Errorf("%s: stored %d times, did %q, want %d", code, b.puts, did, c.puts)
		}
		if err == nil || !strings.Contains(err.Error(), code) {
			t.Errorf("%s: error %v does not say so", code, err)
		}
	}
}
