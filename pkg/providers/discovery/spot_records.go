package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner.sh/pkg/model/spotpools"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// mostSpotRecords bounds the records of other clusters that are read.
const mostSpotRecords = 50

// SpotRecords keeps the record of spot pools of each cluster as one object in S3.
type SpotRecords struct {
	S3     *s3.Client
	Bucket string
	Prefix string // of the records of all clusters whose pools are the same
	Key    string // of the cluster's own record
	Now    func() time.Time
}

// recordChangedError says that somebody else wrote the record.
type recordChangedError struct{ err error }

// Error is what S3 said.
func (e *recordChangedError) Error() string {
	return "the record of spot pools was changed: " + e.err.Error()
}

// Conflict reports true.
func (e *recordChangedError) Conflict() bool { return true }

// Unwrap is what S3 said.
func (e *recordChangedError) Unwrap() error { return e.err }

// ReadOwn reads the cluster's own record with the ETag of its object.
func (r SpotRecords) ReadOwn(ctx context.Context) (spotpools.Record, string, error) {
	own, etag, err := r.read(ctx, r.Key)
	if awserrors.CodeOf(err) == "NoSuchKey" {
		return spotpools.Record{Version: spotpools.Version}, "", nil
	}
	return own, etag, err
}

// WriteOwn stores the record if its object still has that ETag, or is not there where it is empty.
func (r SpotRecords) WriteOwn(ctx context.Context, own spotpools.Record, etag string) error {
	b, err := own.Encode()
	if err != nil {
		return err
	}
	in := &s3.PutObjectInput{Bucket: aws.String(r.Bucket), Key: aws.String(r.Key), Body: bytes.NewReader(b),
		ContentType: aws.String("application/json")}
	if in.IfMatch = aws.String(etag); etag == "" {
		in.IfMatch, in.IfNoneMatch = nil, aws.String("*")
	}
	_, err = r.S3.PutObject(ctx, in)
	if answer, ok := errors.AsType[*awshttp.ResponseError](err); ok &&
		(answer.HTTPStatusCode() == http.StatusPreconditionFailed || answer.HTTPStatusCode() == http.StatusConflict) {
		return &recordChangedError{err}
	}
	if err != nil {
		return fmt.Errorf("put %s into bucket %s: %w", r.Key, r.Bucket, err)
	}
	return nil
}

// ReadOthers reads the records of other clusters in the order of their keys. One that cannot be read is left out, and
// part of the error.
func (r SpotRecords) ReadOthers(ctx context.Context) (out []spotpools.Record, err error) {
	list, err := r.S3.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String(r.Bucket),
		Prefix: aws.String(r.Prefix), MaxKeys: aws.Int32(mostSpotRecords + 1)})
	if err != nil {
		return nil, fmt.Errorf("list %s in bucket %s: %w", r.Prefix, r.Bucket, err)
	}
	for _, o := range list.Contents {
		key := aws.ToString(o.Key)
		if key == r.Key || len(out) == mostSpotRecords {
			continue
		}
		other, _, readErr := r.read(ctx, key)
		if readErr != nil {
			err = errors.Join(err, readErr)
			continue
		}
		out = append(out, other)
	}
	return out, err
}

func (r SpotRecords) read(ctx context.Context, key string) (spotpools.Record, string, error) {
	got, err := r.S3.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(r.Bucket), Key: aws.String(key)})
	if err != nil {
		return spotpools.Record{}, "", fmt.Errorf("get %s from bucket %s: %w", key, r.Bucket, err)
	}
	defer got.Body.Close()
	b, err := io.ReadAll(io.LimitReader(got.Body, spotpools.MaxStored+1))
	if err != nil {
		return spotpools.Record{}, "", fmt.Errorf("read %s from bucket %s: %w", key, r.Bucket, err)
	}
	return spotpools.Decode(b, r.Now()), aws.ToString(got.ETag), nil
}
