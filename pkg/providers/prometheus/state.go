package prometheus

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner.sh/pkg/model/unpack"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

const (
	stateKey = "metrics.json.gz"
	// what is read: 10,000 open series and 20,000 totals with their labels are a third of it
	mostBytes   = 32 << 20
	mostObjects = 500_000
	mostValues  = 2_000_000
)

// Objects is the part of S3 that is used; an *s3.Client does. All calls may be repeated.
type Objects interface {
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
}

// StateStore keeps a value that can be written as JSON in one object. One goroutine uses it at a time.
type StateStore[S any] struct {
	S3     Objects
	Bucket string

	etag string // of what was read or written last
}

// ReadState returns what was stored last, unless that is what was read or written here last: then same is true. Nothing
// stored, or what nobody can read, is the zero value.
func (o *StateStore[S]) ReadState(ctx context.Context) (st S, same bool, err error) {
	in := &s3.GetObjectInput{Bucket: &o.Bucket, Key: aws.String(stateKey)}
	if o.etag != "" {
		in.IfNoneMatch = &o.etag
	}
	out, err := o.S3.GetObject(ctx, in)
	if r, ok := errors.AsType[*awshttp.ResponseError](err); ok && r.HTTPStatusCode() == http.StatusNotModified {
		return st, true, nil
	}
	if code := awserrors.CodeOf(err); code == "NoSuchKey" || awserrors.IsUnreadable(code) { // to be replaced
		o.etag = ""
		return st, false, nil
	}
	if err != nil {
		return st, false, fmt.Errorf("read %s from bucket %s: %w", stateKey, o.Bucket, err)
	}
	defer out.Body.Close()
	o.etag = aws.ToString(out.ETag)
	most := unpack.Bounds{Bytes: mostBytes, Objects: mostObjects, Values: mostValues}
	if err := unpack.JSON(out.Body, most, &st); err != nil {
		return *new(S), false, nil //nolint:nilerr // whoever broke it must not stop us
	}
	return st, false, nil
}

// WriteState stores the value.
func (o *StateStore[S]) WriteState(ctx context.Context, st S) error {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := errors.Join(json.NewEncoder(z).Encode(st), z.Close()); err != nil {
		return fmt.Errorf("write %s: %w", stateKey, err)
	}
	out, err := o.S3.PutObject(ctx, &s3.PutObjectInput{Bucket: &o.Bucket, Key: aws.String(stateKey),
		Body: bytes.NewReader(b.Bytes()), ContentType: aws.String("application/gzip")})
	if err != nil {
		o.etag = "" // it may have arrived
		return fmt.Errorf("write %s to bucket %s: %w", stateKey, o.Bucket, err)
	}
	o.etag = aws.ToString(out.ETag)
	return nil
}
