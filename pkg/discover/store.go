package discover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner/pkg/catalog"
	"joiner/pkg/catalog/builtin"
)

// Limits of the store.
const (
	catalogKey  = "catalog.json.gz"
	catalogType = "application/gzip"
	freshFor    = 30 * time.Second // a warm process asks S3 again after this
	maxObject   = 16 << 20         // bytes
)

// Store keeps the catalog as one object in S3. It may be used by several goroutines.
type Store struct {
	s3     *s3.Client
	bucket string
	maxAge time.Duration
	now    func() time.Time

	mu      sync.Mutex
	have    catalog.Catalog
	etag    string
	checked time.Time
	builtin catalog.Catalog
}

// NewStore makes a store. With an empty bucket every catalog is the built-in one. A stored catalog older than maxAge is used
// with a warning.
func NewStore(c *s3.Client, bucket string, maxAge time.Duration, now func() time.Time) *Store {
	return &Store{s3: c, bucket: bucket, maxAge: maxAge, now: now}
}

// Catalog returns the stored catalog, or the built-in snapshot. Why says what is wrong with what is returned, if anything: it
// is the snapshot, or it is old. It fails only when even the snapshot cannot be read.
func (s *Store) Catalog(ctx context.Context) (c catalog.Catalog, why string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	problem := s.refresh(ctx)
	if len(s.have.Types) == 0 {
		c, err = s.snapshot()
		return c, problem, err
	}
	if age := s.now().Sub(s.have.Time); age > s.maxAge {
		why = fmt.Sprintf("the stored catalog is %s old, is refresh running?", age.Round(time.Minute))
	}
	if problem != "" {
		why = "using the catalog read before: " + problem
	}
	return s.have, why, nil
}

// Stored returns the stored catalog only; ok is false when there is none that can be read.
func (s *Store) Stored(ctx context.Context) (c catalog.Catalog, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked = time.Time{}
	_ = s.refresh(ctx) // without a readable object there is nothing stored
	return s.have, len(s.have.Types) > 0
}

// Put stores the catalog. Repeating it is harmless.
func (s *Store) Put(ctx context.Context, c catalog.Catalog) error {
	if s.bucket == "" {
		return errors.New("store catalog: no bucket is set (setting catalogBucket)")
	}
	b, err := c.Encode()
	if err != nil {
		return err
	}
	_, err = s.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(catalogKey),
		Body: bytes.NewReader(b), ContentType: aws.String(catalogType)})
	if err != nil {
		return fmt.Errorf("put catalog into bucket %s: %w", s.bucket, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked = time.Time{}
	return nil
}

// refresh reads the object if it changed, and says why it could not.
func (s *Store) refresh(ctx context.Context) (problem string) {
	if s.bucket == "" {
		return "no bucket is set (setting catalogBucket)"
	}
	if !s.checked.IsZero() && s.now().Sub(s.checked) < freshFor {
		return ""
	}
	in := &s3.GetObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(catalogKey)}
	if s.etag != "" {
		in.IfNoneMatch = aws.String(s.etag)
	}
	out, err := s.s3.GetObject(ctx, in)
	if notModified(err) {
		s.checked = s.now()
		return ""
	}
	if err != nil {
		return fmt.Sprintf("get catalog from bucket %s: %v", s.bucket, err)
	}
	defer out.Body.Close()
	b, err := io.ReadAll(io.LimitReader(out.Body, maxObject))
	if err != nil {
		return fmt.Sprintf("read catalog from bucket %s: %v", s.bucket, err)
	}
	c, err := catalog.Decode(b)
	if err != nil {
		return err.Error()
	}
	s.have, s.etag, s.checked = c, aws.ToString(out.ETag), s.now()
	return ""
}

func (s *Store) snapshot() (catalog.Catalog, error) {
	if len(s.builtin.Types) > 0 {
		return s.builtin, nil
	}
	c, err := catalog.Decode(builtin.Data())
	if err != nil {
		return c, fmt.Errorf("read the built-in catalog: %w", err)
	}
	s.builtin = c
	return c, nil
}

func notModified(err error) bool {
	r, ok := errors.AsType[*awshttp.ResponseError](err)
	return ok && r.HTTPStatusCode() == http.StatusNotModified
}
