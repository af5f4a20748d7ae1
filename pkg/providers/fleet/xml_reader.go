package fleet

import (
	"bytes"
	"encoding/xml"
	"strconv"
	"strings"
)

// xmlReader reads the plain XML of EC2's answers: elements, most without attributes, and texts. Anything else breaks
// it, such as a comment or an early end: what it gave is worth nothing then.
type xmlReader struct {
	text   []byte
	at     int
	empty  bool // the element that began last, as <name/>, has nothing in it
	broken bool
}

// root goes into the one element of the document, behind its declaration.
func (x *xmlReader) root() bool {
	if i := bytes.Index(x.text, []byte("?>")); i >= 0 && bytes.HasPrefix(x.text, []byte("<?xml")) {
		x.at = i + len("?>")
	}
	_, ok := x.begin()
	return ok && !x.empty
}

// each calls visit with the name of every element in the one that was begun last, and goes behind its end. Visit reads
// the element, or skips it.
func (x *xmlReader) each(visit func(name []byte)) {
	if x.empty {
		x.empty = false
		return
	}
	for !x.broken {
		name, ok := x.begin()
		if !ok {
			return
		}
		visit(name)
	}
}

// begin goes into the next element. It reports false behind the end of the one around it.
func (x *xmlReader) begin() (name []byte, ok bool) {
	tag := x.tag()
	if x.broken || tag[0] == '/' {
		return nil, false
	}
	if tag[len(tag)-1] == '/' {
		x.empty, tag = true, tag[:len(tag)-1]
	}
	if i := bytes.IndexByte(tag, ' '); i >= 0 {
		tag = tag[:i]
	}
	return tag, true
}

// tag goes behind the next tag and returns what is between its brackets, which is not empty unless x is broken.
func (x *xmlReader) tag() []byte {
	from := bytes.IndexByte(x.text[x.at:], '<')
	if from < 0 {
		x.broken = true
		return nil
	}
	from += x.at + 1
	length := bytes.IndexByte(x.text[from:], '>')
	if length <= 0 {
		x.broken = true
		return nil
	}
	x.at = from + length + 1
	return x.text[from : from+length]
}

// skip goes behind the end of the element that was begun last.
func (x *xmlReader) skip() {
	x.each(func([]byte) { x.skip() })
}

// value is the text of the element that was begun last. It goes behind its end.
func (x *xmlReader) value() string {
	if x.empty {
		x.empty = false
		return ""
	}
	from := x.at
	tag := x.tag()
	if x.broken || tag[0] != '/' {
		x.broken = true
		return ""
	}
	text := x.text[from : x.at-len(tag)-len("<>")]
	if bytes.IndexByte(text, '&') < 0 && bytes.IndexByte(text, '\r') < 0 {
		return string(text)
	}
	var out struct {
		Text string `xml:",chardata"`
	}
	if err := xml.Unmarshal([]byte("<t>"+string(text)+"</t>"), &out); err != nil {
		x.broken = true
	}
	return out.Text
}

// number is the text of the element that was begun last, as a number.
func (x *xmlReader) number() *int32 {
	n, err := strconv.ParseInt(strings.TrimSpace(x.value()), 10, 32)
	x.broken = x.broken || err != nil
	out := int32(n)
	return &out
}
