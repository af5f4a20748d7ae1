package wire

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/aws/smithy-go/encoding/cbor"
)

// DecodeCBOR reads a request of the protocol RPC v2 CBOR. Fields that into does not have are an error.
func DecodeCBOR(body []byte, into any) error {
	if len(body) == 0 {
		return nil
	}
	v, err := cbor.Decode(body)
	if err != nil {
		return Fail(400, "SerializationException", "%v", err)
	}
	text, err := json.Marshal(plainValue(v))
	if err != nil {
		return Fail(400, "SerializationException", "%v", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return Fail(400, "SerializationException", "%v (the emulator may not model it)", err)
	}
	return nil
}

// plainValue is a value of CBOR as encoding/json takes it.
func plainValue(v cbor.Value) any {
	switch x := v.(type) {
	case cbor.Map:
		out := map[string]any{}
		for k, one := range x {
			out[k] = plainValue(one)
		}
		return out
	case cbor.List:
		out := make([]any, 0, len(x))
		for _, one := range x {
			out = append(out, plainValue(one))
		}
		return out
	case cbor.String:
		return string(x)
	case cbor.Uint:
		return uint64(x)
	case cbor.Bool:
		return bool(x)
	}
	return nil
}

// cborValue is a value that encoding/json has read as CBOR has it.
func cborValue(v any) cbor.Value {
	switch x := v.(type) {
	case map[string]any:
		out := cbor.Map{}
		for k, one := range x {
			out[k] = cborValue(one)
		}
		return out
	case []any:
		out := cbor.List{}
		for _, one := range x {
			out = append(out, cborValue(one))
		}
		return out
	case string:
		return cbor.String(x)
	case float64:
		return cbor.Float64(x)
	case bool:
		return cbor.Bool(x)
	}
	return &cbor.Nil{}
}

func writeCBOR(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	var plain any
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/cbor")
	w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
	w.WriteHeader(status)
	_, _ = w.Write(cbor.Encode(cborValue(plain))) // a client that went away is its own loss
}
