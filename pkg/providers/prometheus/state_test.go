package prometheus_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"joiner.sh/pkg/providers/prometheus"
)

// bucket has one object, with a tag for each version.
type bucket struct {
	body    []byte
	version int
}

func (b *bucket) tag() *string { t := fmt.Sprint(b.version); return &t }

func (b *bucket) PutObject(_ context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	var err error
	b.body, err = io.ReadAll(in.Body)
	b.version++
	return &s3.PutObjectOutput{ETag: b.tag()}, err
}

func (b *bucket) GetObject(_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	if b.version == 0 {
		return nil, &types.NoSuchKey{}
	}
	if in.IfNoneMatch != nil && *in.IfNoneMatch == *b.tag() {
		return nil, &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusNotModified}}}}
	}
	return &s3.GetObjectOutput{Body: io.NopCloser(bytes.NewReader(b.body)), ETag: b.tag()}, nil
}

func TestStateStore(t *testing.T) {
	b := &bucket{}
	one, other := &prometheus.StateStore[map[string]int]{S3: b, Bucket: "b"}, &prometheus.StateStore[map[string]int]{S3: b, Bucket: "b"}
	read := func(s *prometheus.StateStore[map[string]int], want string) {
		t.Helper()
		st, same, err := s.ReadState(t.Context())
		if got := fmt.Sprint(st, same, err); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	write := func(s *prometheus.StateStore[map[string]int], n int) {
		t.Helper()
		if err := s.WriteState(t.Context(), map[string]int{"n": n}); err != nil {
			t.Fatal(err)
		}
	}
	read(one, "map[] false <nil>")
	write(one, 1)
	read(one, "map[] true <nil>")
	read(other, "map[n:1] false <nil>")
	read(other, "map[] true <nil>")
	write(other, 2)
	read(one, "map[n:2] false <nil>")
	b.body, b.version = []byte("nonsense"), b.version+1
	read(one, "map[] false <nil>")
}

// What cannot be written as JSON is an error, and leaves in the bucket what is there.
func TestStateThatCannotBeEncoded(t *testing.T) {
	b := &bucket{}
	s := &prometheus.StateStore[float64]{S3: b, Bucket: "b"}
	if err := s.WriteState(t.Context(), math.NaN()); err == nil || b.version != 0 {
		t.Errorf("error %v, %d versions", err, b.version)
	}
}

// lockedBucket has an object that may not be read any more, such as one encrypted by a key of before.
type lockedBucket struct {
	bucket
	code string
}

func (b *lockedBucket) GetObject(ctx context.Context, in *s3.GetObjectInput, o ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	if b.version == 0 {
		return nil, &smithy.GenericAPIError{Code: b.code, Message: "no"}
	}
	return b.bucket.GetObject(ctx, in, o...)
}

// A state that nobody may read any more is begun anew: else no metric would ever be sent again. One that S3 cannot hand
// out just now is waited for.
func TestAStateThatNobodyMayRead(t *testing.T) {
	for code, lost := range map[string]bool{"AccessDenied": true, "KMS.DisabledException": true, "InternalError": false, "SlowDown": false} {
		b := &lockedBucket{code: code}
		s := &prometheus.StateStore[map[string]int]{S3: b, Bucket: "b"}
		st, same, err := s.ReadState(t.Context())
		if st != nil || same || (err == nil) != lost {
			t.Errorf("%s: %v, same %t, error %v", code, st, same, err)
		}
		if err := s.WriteState(t.Context(), map[string]int{"n": 1}); err != nil {
			t.Fatal(err)
		}
		s = &prometheus.StateStore[map[string]int]{S3: b, Bucket: "b"}
		if st, _, err := s.ReadState(t.Context()); err != nil || st["n"] != 1 {
			t.Errorf("%s: written and read again: %v, error %v", code, st, err)
		}
	}
}

// A few kilobytes that unpack to millions of values count as nothing stored, and no value is made of them.
func TestAStateOfEmptyObjects(t *testing.T) {
	b := &bucket{version: 1}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("[" + strings.Repeat("{},", 1_000_000) + "{}]"))
	_ = z.Close()
	b.body = packed.Bytes()
	s := &prometheus.StateStore[[]struct{ Text [100]string }]{S3: b, Bucket: "b"}
	if st, same, err := s.ReadState(t.Context()); len(st) > 0 || same || err != nil {
		t.Errorf("%d values are read, %t, %v", len(st), same, err)
	}
}
