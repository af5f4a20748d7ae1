package compact

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/requirements"
)

// Writer collects what is written. The zero value is ready.
type Writer struct {
	out   []byte
	words map[string]uint64 // strings that stand in out, by the order in which they came, from 1
}

// Bytes returns all that was written. Whatever is written later may change it.
func (w *Writer) Bytes() []byte { return w.out }

// Grow makes room for so many bytes more.
func (w *Writer) Grow(n int) { w.out = slices.Grow(w.out, n) }

// WriteUint writes a number.
func (w *Writer) WriteUint(n uint64) { w.out = binary.AppendUvarint(w.out, n) }

// WriteInt writes a number that may be negative.
func (w *Writer) WriteInt(n int64) { w.out = binary.AppendVarint(w.out, n) }

// WriteRaw writes bytes, and not how many they are.
func (w *Writer) WriteRaw(b []byte) { w.out = append(w.out, b...) }

// WriteText writes a string that hardly comes twice.
func (w *Writer) WriteText(s string) {
	w.WriteUint(uint64(len(s)))
	w.out = append(w.out, s...)
}

// WriteWord writes a string that may come again.
func (w *Writer) WriteWord(s string) {
	if n, ok := w.words[s]; ok {
		w.WriteUint(n)
		return
	}
	if w.words == nil {
		w.words = map[string]uint64{}
	}
	w.words[s] = uint64(len(w.words) + 1)
	w.WriteUint(0)
	w.WriteText(s)
}

// WriteValue writes a value of a type that Fingerprint knows. It panics about others.
func WriteValue[T any](w *Writer, v *T) { w.writeValue(reflect.ValueOf(v).Elem()) }

func (w *Writer) writeValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		w.writeBool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.WriteInt(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		w.WriteUint(v.Uint())
	case reflect.Float32, reflect.Float64:
		w.out = binary.LittleEndian.AppendUint64(w.out, math.Float64bits(v.Float()))
	case reflect.String:
		w.WriteWord(v.String())
	case reflect.Pointer:
		w.writeBool(!v.IsNil())
		if !v.IsNil() {
			w.writeValue(v.Elem())
		}
	case reflect.Slice:
		w.writeCount(v)
		for i := range v.Len() {
			w.writeValue(v.Index(i))
		}
	case reflect.Map:
		w.writeMap(v)
	case reflect.Struct:
		w.writeStruct(v)
	default:
		panic(fmt.Sprintf("compact: write a %s", v.Type()))
	}
}

// writeBool writes a byte.
func (w *Writer) writeBool(b bool) {
	if b {
		w.out = append(w.out, 1)
		return
	}
	w.out = append(w.out, 0)
}

// writeCount tells nil from empty.
func (w *Writer) writeCount(v reflect.Value) {
	if v.IsNil() {
		w.WriteUint(0)
		return
	}
	w.WriteUint(uint64(v.Len()) + 1)
}

func (w *Writer) writeMap(v reflect.Value) {
	w.writeCount(v)
	if v.Type() == reflect.TypeFor[map[string]string]() {
		m := v.Interface().(map[string]string)
		for _, k := range slices.Sorted(maps.Keys(m)) {
			w.WriteWord(k)
			w.WriteWord(m[k])
		}
		return
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range keys {
		w.WriteWord(k.String())
		w.writeValue(v.MapIndex(k))
	}
}

func (w *Writer) writeStruct(v reflect.Value) {
	switch v.Type() { // to make an interface of others would copy them
	case reflect.TypeFor[time.Time]():
		x := v.Interface().(time.Time)
		w.WriteInt(x.Unix())
		w.WriteUint(uint64(x.Nanosecond()))
	case reflect.TypeFor[requirements.Set]():
		x := v.Interface().(requirements.Set)
		w.writeValue(reflect.ValueOf(x.All()))
	default:
		for i := range v.NumField() {
			w.writeValue(v.Field(i))
		}
	}
}
