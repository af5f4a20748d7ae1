package awsemulator

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// objects is S3 in the account.
type objects struct {
	*account
	s3 *buckets
}

// buckets is S3: the protocol and the storage are gofakes3's.
type buckets struct {
	backend *s3mem.Backend
	handler http.Handler
}

func newBuckets() *buckets {
	b := s3mem.New()
	return &buckets{backend: b, handler: gofakes3.New(b, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()}
}

func (b *buckets) serveCall(w http.ResponseWriter, r *call) {
	r.http.Body = io.NopCloser(bytes.NewReader(r.body))
	b.handler.ServeHTTP(w, r.http)
}

// s3Action is the name of what a request to a bucket (path style) asks for.
func s3Action(r *http.Request) string {
	_, object, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	what := "Bucket"
	if object != "" {
		what = "Object"
	}
	switch r.Method {
	case http.MethodPut:
		if what == "Bucket" {
			return "CreateBucket"
		}
		return "PutObject"
	case http.MethodGet:
		if what == "Bucket" {
			return "ListObjectsV2"
		}
		return "GetObject"
	case http.MethodHead:
		return "Head" + what
	case http.MethodDelete:
		return "Delete" + what
	}
	return r.Method + what
}

// PutBucket makes a bucket exist.
func (c *objects) PutBucket(name string) error {
	err := c.s3.backend.CreateBucket(name)
	if err != nil && !gofakes3.HasErrorCode(err, gofakes3.ErrBucketAlreadyExists) {
		return fmt.Errorf("create bucket %s: %w", name, err)
	}
	return nil
}

// DeleteBucket takes a bucket away that has nothing in it.
func (c *objects) DeleteBucket(name string) error {
	err := c.s3.backend.DeleteBucket(name)
	if err != nil && !gofakes3.HasErrorCode(err, gofakes3.ErrNoSuchBucket) {
		return fmt.Errorf("delete bucket %s: %w", name, err)
	}
	return nil
}
