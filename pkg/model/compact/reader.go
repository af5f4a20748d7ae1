package compact

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"time"

	"joiner.sh/pkg/model/requirements"
)

// Reader reads what a Writer wrote, in the same order. After the first error it reads zero values.
type Reader struct {
	in    []byte
	words []string
	err   error
}

// NewReader reads from bytes, which must not be changed meanwhile. No value read keeps them in memory.
func NewReader(b []byte) *Reader { return &Reader{in: b} }

// Err is the first error.
func (r *Reader) Err() error { return r.err }

// Rest returns the number of bytes that are left.
func (r *Reader) Rest() int { return len(r.in) }

// Fail has what was read count as damaged.
func (r *Reader) Fail() { r.fail("%w", DamagedError{}) }

func (r *Reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	r.in = nil
}

// ReadUint reads a number.
func (r *Reader) ReadUint() uint64 {
	n, size := binary.Uvarint(r.in)
	r.skipNumber(size)
	return n
}

func (r *Reader) skipNumber(size int) {
	if size <= 0 {
		r.fail("read a number: %w", DamagedError{})
		return
	}
	r.in = r.in[size:]
}

// DamagedError says that bytes are not what a Writer wrote.
type DamagedError struct{}

// Error says so.
func (DamagedError) Error() string { return "the bytes end too early or are damaged" }

// ReadInt reads a number that may be negative.
func (r *Reader) ReadInt() int64 {
	n, size := binary.Varint(r.in)
	r.skipNumber(size)
	return n
}

// ReadRaw reads so many bytes, nil when there are fewer. They are those that the Reader was made of.
func (r *Reader) ReadRaw(n int) []byte {
	if n < 0 || n > len(r.in) {
		r.fail("read %d bytes: %w", n, DamagedError{})
		return nil
	}
	out := r.in[:n]
	r.in = r.in[n:]
	return out
}

// ReadCount reads a number of things of which each takes at least one byte.
func (r *Reader) ReadCount() int {
	n := r.ReadUint()
	if n > uint64(len(r.in)) {
		r.fail("read a count of %d: %w", n, DamagedError{})
		return 0
	}
	return int(n)
}

// ReadText reads what WriteText wrote.
func (r *Reader) ReadText() string { return string(r.ReadRaw(r.ReadCount())) }

// ReadWord reads what WriteWord wrote.
func (r *Reader) ReadWord() string {
	n := r.ReadUint()
	switch {
	case r.err != nil:
		return ""
	case n == 0:
		s := r.ReadText()
		r.words = append(r.words, s)
		return s
	case n > uint64(len(r.words)):
		r.fail("read word %d of %d", n, len(r.words))
		return ""
	}
	return r.words[n-1]
}

// ReadValue reads what WriteValue wrote of the same type.
func ReadValue[T any](r *Reader, into *T) { r.readValue(reflect.ValueOf(into).Elem()) }

func (r *Reader) readValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.readBool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(r.ReadInt())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.ReadUint())
	case reflect.Float32, reflect.Float64:
		if b := r.ReadRaw(8); b != nil {
			v.SetFloat(math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
	case reflect.String:
		v.SetString(r.ReadWord())
	case reflect.Pointer:
		if r.readBool() {
			v.Set(reflect.New(v.Type().Elem()))
			r.readValue(v.Elem())
		}
	case reflect.Slice:
		r.readSlice(v)
	case reflect.Map:
		r.readMap(v)
	case reflect.Struct:
		r.readStruct(v)
	default:
		r.fail("read a %s", v.Type())
	}
}

func (r *Reader) readBool() bool {
	b := r.ReadRaw(1)
	if len(b) == 1 && b[0] > 1 {
		r.fail("read true or false: %w", DamagedError{})
	}
	return len(b) == 1 && b[0] == 1
}

// mostAtOnce is for how many elements room is made before they are read.
const mostAtOnce = 64

func (r *Reader) readSlice(v reflect.Value) {
	n, some := r.readLength()
	if !some {
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, int(min(n, mostAtOnce)))
	for range n {
		if r.err != nil {
			return
		}
		one := reflect.New(v.Type().Elem()).Elem()
		r.readValue(one)
		out = reflect.Append(out, one)
	}
	v.Set(out.Slice3(0, out.Len(), out.Len())) // whoever appends makes another
}

// readLength reads how many elements a slice or map has; false for a nil one, and for more than bytes are left.
func (r *Reader) readLength() (n uint64, some bool) {
	switch n = r.ReadUint(); {
	case n == 0:
		return 0, false
	case n-1 > uint64(len(r.in)):
		r.fail("read a count of %d: %w", n, DamagedError{})
		return 0, false
	}
	return n - 1, true
}

func (r *Reader) readMap(v reflect.Value) {
	n, some := r.readLength()
	if !some {
		return
	}
	if m, ok := v.Addr().Interface().(*map[string]string); ok {
		*m = make(map[string]string, min(n, mostAtOnce))
		for range n {
			if r.err != nil {
				return
			}
			k := r.ReadWord()
			(*m)[k] = r.ReadWord()
		}
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for range n {
		if r.err != nil {
			return
		}
		k, one := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		k.SetString(r.ReadWord())
		r.readValue(one)
		v.SetMapIndex(k, one)
	}
}

func (r *Reader) readStruct(v reflect.Value) {
	switch into := v.Addr().Interface().(type) {
	case *time.Time:
		sec, nsec := r.ReadInt(), r.ReadUint()
		*into = time.Unix(sec, int64(min(nsec, 999_999_999))).UTC()
	case *requirements.Set:
		var list []requirements.Requirement
		ReadValue(r, &list)
		*into = requirements.Sorted(list)
	default:
		for i := range v.NumField() {
			r.readValue(v.Field(i))
		}
	}
}
