package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// Limits of the store.
const (
	catalogKey  = "catalog.json.gz"
	catalogType = "application/gzip"
	freshFor    = 30 * time.Second // a warm process asks S3 again after this
	maxObject   = 16 << 20         // bytes
	oddTold     = 5                // implausible types that a message names
	futureSkew  = 5 * time.Minute  // by which clocks may differ
)

// CatalogMaxAge is the age beyond which a stored catalog is used with a warning.
const CatalogMaxAge = 24 * time.Hour

// CatalogStore keeps the catalog as one object in S3. It may be used by several goroutines.
type CatalogStore struct {
	s3     *s3.Client
	bucket string
	maxAge time.Duration
	now    func() time.Time

	mu      sync.Mutex
	have    instancetypes.Catalog // as it is used
	stored  instancetypes.Catalog // as it was read, but for what cannot be true
	etag    string
	written string // ETag of what this process stored last
	checked time.Time
	problem error    // of that check
	odd     []string // what of the object cannot be true
	jumps   instancetypes.PriceJumps
	held    []string // prices of the object that moved too far to be used yet
	builtin instancetypes.Catalog
}

// NewStore makes a store. With an empty bucket every catalog is the built-in one. A stored catalog older than maxAge is
// used with a warning.
func NewStore(c *s3.Client, bucket string, maxAge time.Duration, now func() time.Time) *CatalogStore {
	return &CatalogStore{s3: c, bucket: bucket, maxAge: maxAge, now: now}
}

// ReadCatalog returns the stored catalog, or the built-in snapshot. Why says what is wrong with what is returned, if
// anything: it is the snapshot, or it is old. It fails only when even the snapshot cannot be read.
func (s *CatalogStore) ReadCatalog(ctx context.Context) (c instancetypes.Catalog, why string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	problem := s.lookForNewer(ctx)
	if len(s.have.Types) == 0 {
		c, err = s.builtInCatalog()
		return c, fmt.Sprintf("using the built-in catalog of %s: %v", c.Region, problem), err
	}
	if problem != nil {
		return s.have, fmt.Sprintf("using the catalog read before: %v", problem), nil
	}
	return s.have, s.doubts(), nil
}

// doubts says what is not right with the catalog that was read, or nothing.
func (s *CatalogStore) doubts() string {
	some := func(all []string) string { return strings.Join(all[:min(len(all), oddTold)], "; ") }
	switch age := s.now().Sub(s.have.Time); {
	case len(s.odd) > 0:
		return fmt.Sprintf("%d types of the stored catalog have figures that cannot be true, "+
			"who may write to the bucket? %s", len(s.odd), some(s.odd))
	case len(s.held) > 0:
		return fmt.Sprintf("%d prices of the stored catalog moved more than threefold at once, the old ones hold until "+
			"refresh says so again: %s", len(s.held), some(s.held))
	case age > s.maxAge:
		return fmt.Sprintf("the stored catalog is %s old, is refresh running?", age.Round(time.Minute))
	case age < -futureSkew:
		return fmt.Sprintf("the stored catalog was written %s from now, whose clock is wrong?", (-age).Round(time.Minute))
	}
	return ""
}

// ReadStored returns the stored catalog as it is now, one without types when there is none or when it is damaged. It
// fails when there may be one that cannot be read: whoever would write another in its place must not.
func (s *CatalogStore) ReadStored(ctx context.Context) (instancetypes.Catalog, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked = time.Time{}
	err := s.readIfChanged(ctx)
	if _, ok := errors.AsType[*nothingStoredError](err); ok {
		return instancetypes.Catalog{}, nil
	}
	if err != nil {
		return instancetypes.Catalog{}, err
	}
	return s.stored, nil
}

// isForeign reports whether somebody else wrote the object that was read last, after this process wrote one.
func (s *CatalogStore) isForeign() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written != "" && s.written != s.etag
}

// BuiltInCatalog returns the built-in catalog.
func (s *CatalogStore) BuiltInCatalog() (instancetypes.Catalog, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.builtInCatalog()
}

// PutCatalog stores the catalog. Repeating it is harmless.
func (s *CatalogStore) PutCatalog(ctx context.Context, c instancetypes.Catalog) error {
	if s.bucket == "" {
		return errors.New("store catalog: no bucket is set (setting catalogBucket)")
	}
	b, err := c.Encode()
	if err != nil {
		return err
	}
	out, err := s.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(catalogKey),
		Body: bytes.NewReader(b), ContentType: aws.String(catalogType)})
	if err != nil {
		return fmt.Errorf("put catalog into bucket %s: %w", s.bucket, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked, s.written = time.Time{}, aws.ToString(out.ETag)
	return nil
}

// nothingStoredError says that the bucket holds no object that can be used.
type nothingStoredError struct{ why string }

// Error is the reason.
func (e *nothingStoredError) Error() string { return e.why }

// firstReadTimeout bounds the read of a process that has no catalog yet: the one that is built in is better than a pass
// that launches nothing.
const firstReadTimeout = 6 * time.Second

// lookForNewer is readIfChanged that waits for S3 for a few seconds only, and for a moment where a catalog was read
// before.
func (s *CatalogStore) lookForNewer(ctx context.Context) error {
	if len(s.have.Types) == 0 {
		ctx, cancel := context.WithTimeout(ctx, firstReadTimeout)
		defer cancel()
		return s.readIfChanged(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	return s.readIfChanged(ctx, func(o *s3.Options) { o.Retryer = aws.NopRetryer{} })
}

// readIfChanged reads the object if it may have changed, and says why it could not. What it found holds for a while, so
// that a function that looks every second does not ask S3 every second.
func (s *CatalogStore) readIfChanged(ctx context.Context, options ...func(*s3.Options)) error {
	if s.bucket == "" {
		return errors.New("no bucket is set (setting catalogBucket)")
	}
	if !s.checked.IsZero() && s.now().Sub(s.checked) < freshFor {
		return s.problem
	}
	s.problem = s.readObject(ctx, options...)
	s.checked = s.now()
	return s.problem
}

func (s *CatalogStore) readObject(ctx context.Context, options ...func(*s3.Options)) error {
	in := &s3.GetObjectInput{Bucket: aws.String(s.bucket), Key: aws.String(catalogKey)}
	if s.etag != "" {
		in.IfNoneMatch = aws.String(s.etag)
	}
	out, err := s.s3.GetObject(ctx, in, options...)
	switch {
	case notModified(err):
		return nil
	case awserrors.CodeOf(err) == "NoSuchKey":
		return &nothingStoredError{"bucket " + s.bucket + " holds no " + catalogKey + " yet, refresh stores one"}
	case err != nil:
		return fmt.Errorf("get catalog from bucket %s: %w", s.bucket, err)
	}
	defer out.Body.Close()
	b, err := io.ReadAll(io.LimitReader(out.Body, maxObject))
	if err != nil {
		return fmt.Errorf("read catalog from bucket %s: %w", s.bucket, err)
	}
	c, err := instancetypes.DecodeCatalog(b)
	if err != nil {
		return &nothingStoredError{err.Error()}
	}
	known, err := s.builtInCatalog()
	if err != nil {
		return err
	}
	c, odd := c.Plausible(known)
	if len(c.Types) == 0 {
		return &nothingStoredError{"no type of the stored catalog is plausible: " + odd[0]}
	}
	s.stored, s.odd, s.etag = c, odd, aws.ToString(out.ETag)
	s.have, s.held = s.jumps.Settle(c, s.have, s.now())
	return nil
}

func (s *CatalogStore) builtInCatalog() (instancetypes.Catalog, error) {
	if len(s.builtin.Types) > 0 {
		return s.builtin, nil
	}
	c, err := instancetypes.DecodeCatalog(builtin.Data())
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
