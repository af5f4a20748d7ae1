package kube

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// mostPageBytes bounds the body of a page in protobuf. 500 usual pods are 2 to 5 MiB, but the API server takes pods
	// of more than a megabyte each: a page of those would not arrive within the time of a call.
	mostPageBytes = 32 << 20
	// mostJSONBytes is the same for a page in JSON, which stands in memory as a whole, body and objects.
	mostJSONBytes = 8 << 20
	// decodedAtOnce is the number of bytes of protobuf decoded at once, if it is not a single object that is larger:
	// objects take about three times as much memory.
	decodedAtOnce = 256 << 10
)

// Fields of the messages that a list is encoded in. See generated.proto of apimachinery and of the API groups.
const (
	protobufPrefix = "k8s\x00" // of any object
	fieldRaw       = 2         // of Unknown: the list
	fieldListMeta  = 1         // of every list
	fieldItems     = 2         // of every list
)

// pageTooLargeError says that the body of a page is larger than may be read: fewer objects must be asked for.
type pageTooLargeError struct{ limit int64 }

// Error says how many bytes are allowed.
func (e *pageTooLargeError) Error() string {
	return fmt.Sprintf("the answer is larger than %d MiB", e.limit>>20)
}

// boundedBody is a body that may not have more bytes than the limit.
type boundedBody struct {
	io.Reader
	limit, read int64
}

// Read is a *pageTooLargeError past the limit.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.read += int64(n); b.read > b.limit {
		return 0, &pageTooLargeError{b.limit}
	}
	return n, err
}

// protobufList is a list that can be decoded from a part of its message.
type protobufList interface{ Unmarshal(message []byte) error }

// listDecoder decodes the body of a page. take gets the list object by object, or a few at once.
type listDecoder[L listObject] struct {
	json  runtime.Decoder
	fresh func() L
	take  func(L)
}

// decode reads a page to its end. It returns the list without its objects, and how many bytes it had.
func (d listDecoder[L]) decode(body io.Reader) (meta L, size int64, err error) {
	bounded := &boundedBody{Reader: body, limit: mostPageBytes}
	in := bufio.NewReader(bounded)
	prefix, err := in.Peek(len(protobufPrefix))
	if err != nil {
		return meta, 0, fmt.Errorf("read the answer: %w", err)
	}
	if string(prefix) == protobufPrefix {
		meta, err = d.decodeProtobuf(&fieldReader{in: in})
		return meta, bounded.read, err
	}
	bounded.limit = mostJSONBytes
	text, err := io.ReadAll(in)
	if err != nil {
		return meta, 0, fmt.Errorf("read the answer: %w", err)
	}
	meta = d.fresh()
	got, kind, err := d.json.Decode(text, nil, meta)
	if err == nil {
		err = isList(text, got, kind, meta)
	}
	if err != nil {
		return meta, 0, err
	}
	d.take(meta)
	return meta, bounded.read, nil
}

// isList is an error where an answer that says that all is well is no list of the kind: the decoder leaves the list
// empty then, and an empty cluster is the worst that can be believed.
func isList(text []byte, got runtime.Object, kind *schema.GroupVersionKind, list listObject) error {
	status, failed := got.(*metav1.Status)
	switch {
	case failed:
		return fmt.Errorf("the answer is no list, but says: %s", status.Message)
	case got != runtime.Object(list) && (!apimeta.IsListType(got) || apimeta.LenList(got) > 0):
		return fmt.Errorf("the answer is no list of the kind, but a %s", kind.Kind)
	case string(bytes.TrimSpace(text)) == "null":
		return errors.New("the answer is null")
	}
	return nil
}

func (d listDecoder[L]) decodeProtobuf(in *fieldReader) (meta L, err error) {
	meta = d.fresh()
	if err := in.discard(int64(len(protobufPrefix))); err != nil {
		return meta, err
	}
	found := false
	for {
		field, length, err := in.nextField()
		switch {
		case errors.Is(err, io.EOF) && found:
			return meta, nil
		case errors.Is(err, io.EOF):
			err = io.ErrUnexpectedEOF
		case err == nil && field == fieldRaw:
			found = true
			err = d.decodeList(in, in.at+length, meta)
		case err == nil:
			err = in.discard(length)
		}
		if err != nil {
			return meta, fmt.Errorf("decode a list: %w", err)
		}
	}
}

// decodeList decodes the message of the list, which ends at end.
func (d listDecoder[L]) decodeList(in *fieldReader, end int64, meta L) error {
	var items []byte // encoded, as a list without anything else
	flush := func() error {
		if len(items) == 0 {
			return nil
		}
		some := d.fresh()
		if err := unmarshalList(some, items); err != nil {
			return err
		}
		items = items[:0]
		d.take(some)
		return nil
	}
	for in.at < end {
		field, length, err := in.nextField()
		switch {
		case err != nil:
		case field == fieldItems:
			if items, err = in.appendField(items, fieldItems, length); err == nil && len(items) >= decodedAtOnce {
				err = flush()
			}
		case field == fieldListMeta:
			var head []byte
			if head, err = in.appendField(nil, fieldListMeta, length); err == nil {
				err = unmarshalList(meta, head)
			}
		default:
			err = in.discard(length)
		}
		if err != nil {
			return noEOF(err)
		}
	}
	if in.at > end {
		return errors.New("a field is longer than its list")
	}
	return flush()
}

func unmarshalList(l any, message []byte) error {
	into, ok := l.(protobufList)
	if !ok {
		return fmt.Errorf("%T cannot be decoded from protobuf", l)
	}
	return into.Unmarshal(message)
}

// noEOF is the error of a message that ends too early.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// fieldReader reads the fields of a protobuf message one after the other.
type fieldReader struct {
	in *bufio.Reader
	at int64 // bytes that were read
}

// ReadByte reads one byte.
func (r *fieldReader) ReadByte() (byte, error) {
	b, err := r.in.ReadByte()
	if err == nil {
		r.at++
	}
	return b, err
}

func (r *fieldReader) discard(n int64) error {
	done, err := r.in.Discard(int(n))
	r.at += int64(done)
	return err
}

// nextField goes to the next field that is bytes or a message, and returns its number and length. The error is io.EOF
// when there is none.
func (r *fieldReader) nextField() (number uint64, length int64, err error) {
	const varint, fixed64, delimited, fixed32 = 0, 1, 2, 5 // wire types
	for {
		key, err := binary.ReadUvarint(r)
		if err != nil {
			return 0, 0, err
		}
		switch key & 7 {
		case varint:
			_, err = binary.ReadUvarint(r)
		case fixed64:
			err = r.discard(8)
		case fixed32:
			err = r.discard(4)
		case delimited:
			n, err := binary.ReadUvarint(r)
			if err == nil && n > mostPageBytes {
				err = &pageTooLargeError{mostPageBytes}
			}
			return key >> 3, int64(n), noEOF(err)
		default:
			err = fmt.Errorf("a field has the unknown wire type %d", key&7)
		}
		if err != nil {
			return 0, 0, noEOF(err)
		}
	}
}

// appendField appends the field of that number, whose length was read, as it is encoded.
func (r *fieldReader) appendField(to []byte, number uint64, length int64) ([]byte, error) {
	to = binary.AppendUvarint(binary.AppendUvarint(to, number<<3|2), uint64(length))
	at := len(to)
	to = slices.Grow(to, int(length))[:at+int(length)]
	n, err := io.ReadFull(r.in, to[at:])
	r.at += int64(n)
	return to, err
}
