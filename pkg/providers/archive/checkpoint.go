package archive

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner.sh/pkg/nodeclaim/awserrors"
)

// CheckpointKey is the object that holds the checkpoint of the cluster's cache.
const CheckpointKey = "cluster-checkpoint"

// CheckpointStore keeps one checkpoint in a bucket. Both calls may be repeated.
type CheckpointStore struct {
	S3     Objects
	Bucket string // empty: there is none, and writing fails
}

// ReadCheckpoint returns the checkpoint, nil when there is none. It fails for one of more than most bytes.
func (s CheckpointStore) ReadCheckpoint(ctx context.Context, most int64) ([]byte, error) {
	if s.Bucket == "" {
		return nil, nil
	}
	got, err := s.S3.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.Bucket, Key: aws.String(CheckpointKey)})
	switch code := awserrors.CodeOf(err); {
	case code == "NoSuchKey" || code == "AccessDenied": // who may not list is told the second for the first
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get checkpoint from bucket %s: %w", s.Bucket, err)
	}
	defer got.Body.Close()
	if size := aws.ToInt64(got.ContentLength); size > most {
		return nil, fmt.Errorf("get checkpoint from bucket %s: it has %d bytes, at most %d are read", s.Bucket, size, most)
	}
	var b bytes.Buffer
	b.Grow(int(aws.ToInt64(got.ContentLength)) + bytes.MinRead)
	n, err := b.ReadFrom(io.LimitReader(got.Body, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read checkpoint from bucket %s: %w", s.Bucket, err)
	case n > most:
		return nil, fmt.Errorf("read checkpoint from bucket %s: it has more than %d bytes", s.Bucket, most)
	}
	return b.Bytes(), nil
}

// WriteCheckpoint replaces the checkpoint.
func (s CheckpointStore) WriteCheckpoint(ctx context.Context, b []byte) error {
	_, err := s.S3.PutObject(ctx, &s3.PutObjectInput{Bucket: &s.Bucket, Key: aws.String(CheckpointKey),
		Body: bytes.NewReader(b), ContentType: aws.String("application/octet-stream")})
	if err != nil {
		return fmt.Errorf("put checkpoint into bucket %s: %w", s.Bucket, err)
	}
	return nil
}
