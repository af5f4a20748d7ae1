package archive_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"joiner.sh/pkg/providers/archive"
)

// refusing answers every question with an error of S3.
type refusing struct {
	bucket
	code string
}

func (r refusing) GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	return nil, &smithy.GenericAPIError{Code: r.code}
}

func TestACheckpointIsStored(t *testing.T) {
	s := archive.CheckpointStore{S3: bucket{}, Bucket: "b"}
	if err := s.WriteCheckpoint(t.Context(), []byte("pods")); err != nil {
		t.Fatal(err)
	}
	if b, err := s.ReadCheckpoint(t.Context(), 4); string(b) != "pods" || err != nil {
		t.Errorf("%q is read, error %v", b, err)
	}
	if b, err := s.ReadCheckpoint(t.Context(), 3); b != nil || err == nil || !strings.Contains(err.Error(), "more than 3") {
		t.Errorf("a larger one than is read: %q, error %v", b, err)
	}
	s.Bucket = "another"
	if err := s.WriteCheckpoint(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "bucket another: access denied") {
		t.Errorf("error %v, want that of the bucket", err)
	}
}

// Whoever may not list a bucket is refused an object that is not there.
func TestNoCheckpoint(t *testing.T) {
	for code, want := range map[string]string{"NoSuchKey": "", "AccessDenied": "", "SlowDown": "get checkpoint from bucket b"} {
		b, err := archive.CheckpointStore{S3: refusing{code: code}, Bucket: "b"}.ReadCheckpoint(t.Context(), 4)
		if b != nil || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, error %v", code, b, err)
		}
	}
	if b, err := (archive.CheckpointStore{S3: refusing{}}).ReadCheckpoint(t.Context(), 4); b != nil || err != nil {
		t.Errorf("without a bucket: %q, error %v", b, err)
	}
	var failed *smithy.GenericAPIError
	if _, err := (archive.CheckpointStore{S3: refusing{code: "SlowDown"}, Bucket: "b"}).ReadCheckpoint(t.Context(), 4); !errors.As(err, &failed) {
		t.Errorf("error %v does not hold that of S3", err)
	}
}
