package wire

import (
	"bytes"
	"encoding/xml"
	"net/http"
	"time"
)

type xmlFailure struct {
	Type    string `xml:"Type,omitempty"`
	Code    string
	Message string
}

type ec2Failure struct {
	Errors    []xmlFailure `xml:"Errors>Error"`
	RequestID string
}

type queryFailure struct {
	Error     xmlFailure
	RequestID string `xml:"RequestId"`
}

type s3Failure struct {
	Code      string
	Message   string
	RequestID string `xml:"RequestId"`
}

type raw struct {
	Text string `xml:",innerxml"`
}

// Time is written as AWS writes times in XML: UTC with milliseconds.
type Time struct{ time.Time }

// MarshalXML writes t as element text; a zero time is left out.
func (t Time) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	if t.IsZero() {
		return nil
	}
	return e.EncodeElement(t.UTC().Format("2006-01-02T15:04:05.000Z"), start)
}

// innerXML renders the fields of a struct without an element around them.
func innerXML(body any) string {
	if body == nil {
		return ""
	}
	var b bytes.Buffer
	e := xml.NewEncoder(&b)
	if err := e.EncodeElement(body, xml.StartElement{Name: xml.Name{Local: "r"}}); err != nil {
		return "<encodingError>" + err.Error() + "</encodingError>"
	}
	text := b.Bytes()
	text = bytes.TrimPrefix(text, []byte("<r>"))
	return string(bytes.TrimSuffix(text, []byte("</r>")))
}

func writeXML(w http.ResponseWriter, status int, name, space string, body any) {
	start := xml.StartElement{Name: xml.Name{Local: name}}
	if space != "" {
		start.Attr = []xml.Attr{{Name: xml.Name{Local: "xmlns"}, Value: space}}
	}
	var b bytes.Buffer
	b.WriteString(xml.Header)
	if err := xml.NewEncoder(&b).EncodeElement(body, start); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a client that went away is its own loss
}
