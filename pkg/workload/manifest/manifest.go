package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	"sigs.k8s.io/yaml"
)

const (
	// MostBytes bounds a file, unpacked.
	MostBytes = 256 << 20
	// mostYAML bounds what is not JSON, which takes a hundred times its size in memory while it is read.
	mostYAML = 64 << 20
	// mostObjects bounds the objects of one file.
	mostObjects = 100_000
	// mostComplaints caps the broken documents of one file that are named.
	mostComplaints = 10
)

// Document is one object of a file.
type Document struct {
	File       string
	APIVersion string
	Kind       string
	Namespace  string // as written; empty for none
	Name       string
	Body       []byte // JSON

	start  int          // line of the file on which the source begins, from 1
	source *sourceLines // of the YAML or JSON document that holds the object
	within string       // path of the object in its document, for items of a List
}

// Error is a complaint about one place of a file.
type Error struct {
	File   string
	Line   int    // from 1; 0 when it is not known
	Object string // kind and name, as far as they are known
	Field  string // path such as spec.limits.cpu; empty for the whole object
	Why    string // what is wrong and what to do
}

// Error is the complaint in one line: file:line: object: field: why.
func (e *Error) Error() string {
	at := e.File
	switch {
	case e.Line > 0 && e.File == "":
		at = "line " + strconv.Itoa(e.Line)
	case e.Line > 0:
		at += ":" + strconv.Itoa(e.Line)
	}
	for _, part := range []string{e.Object, e.Field, e.Why} {
		if part != "" && at != "" {
			at += ": "
		}
		at += part
	}
	return at
}

// ParseManifests reads every object of a file, items of Lists on their own. Documents without content are left out. The
// error joins an *Error for each of the first broken documents; the objects of the others are returned with it.
func ParseManifests(file string, data []byte) ([]Document, error) {
	text, err := Gunzip(data)
	if err != nil {
		return nil, &Error{File: file, Why: err.Error()}
	}
	if bytes.HasPrefix(text, []byte("k8s\x00")) {
		return nil, &Error{File: file, Why: "it is protobuf of the API server; write the objects with -o json or -o yaml"}
	}
	if text, _, err = transform.Bytes(unicode.BOMOverride(transform.Nop), text); err != nil {
		return nil, &Error{File: file, Why: "it is no text: " + err.Error()}
	}
	var out []Document
	var problems []error
	for _, p := range splitStream(text) {
		docs, err := p.decodeObjects(file)
		if err != nil {
			problems = append(problems, err)
		}
		out = append(out, docs...)
		if len(problems) == mostComplaints {
			break
		}
		if len(out) > mostObjects {
			return nil, &Error{File: file, Why: fmt.Sprintf("it holds more than %d objects; split it", mostObjects)}
		}
	}
	return out, errors.Join(problems...)
}

// streamPart is one document of a stream with the line that it begins on.
type streamPart struct {
	line int
	text []byte
}

// splitStream splits a stream at the separators and ends of YAML documents, and after each JSON object.
func splitStream(text []byte) []streamPart {
	var out []streamPart
	for _, p := range splitDocuments(text) {
		out = append(out, p.splitObjects()...)
	}
	return out
}

// splitObjects splits JSON objects in a row. What is no JSON stays whole from there on.
func (p streamPart) splitObjects() []streamPart {
	var out []streamPart
	for {
		start := len(p.text) - len(bytes.TrimLeft(p.text, " \t\r\n"))
		line := p.line + bytes.Count(p.text[:start], []byte("\n"))
		var one json.RawMessage
		d := json.NewDecoder(bytes.NewReader(p.text[start:]))
		if !bytes.HasPrefix(p.text[start:], []byte("{")) || d.Decode(&one) != nil {
			break
		}
		out = append(out, streamPart{line: line, text: one})
		p = streamPart{line: line + bytes.Count(one, []byte("\n")), text: p.text[start+int(d.InputOffset()):]}
	}
	if len(out) == 0 || len(bytes.TrimSpace(p.text)) > 0 {
		out = append(out, p)
	}
	return out
}

func splitDocuments(text []byte) []streamPart {
	var out []streamPart
	now, line := streamPart{line: 1}, 0
	for l := range bytes.Lines(text) {
		line++
		if rest, cut := bytes.CutPrefix(l, []byte("---")); cut &&
			(len(bytes.TrimSpace(rest)) == 0 || rest[0] == ' ' || rest[0] == '\t') {
			out = append(out, now)
			now = streamPart{line: line + 1}
			if rest = bytes.TrimSpace(rest); len(rest) > 0 && rest[0] != '#' { // a document may begin behind the dashes
				now = streamPart{line: line, text: append([]byte("   "), l[3:]...)}
			}
			continue
		}
		if string(bytes.TrimRight(l, " \t\r\n")) == "..." {
			out, now = append(out, now), streamPart{line: line + 1}
			continue
		}
		if l[0] == '%' && len(bytes.TrimSpace(now.text)) == 0 { // a directive, which says nothing about the objects
			l = []byte("\n")
		}
		now.text = append(now.text, l...)
	}
	return append(out, now)
}

// decodeObjects returns the objects of one document.
func (p streamPart) decodeObjects(file string) ([]Document, error) {
	body, err := p.asJSON()
	if err != nil {
		err.File = file
		return nil, err
	}
	if string(body) == "null" {
		return nil, nil
	}
	d := Document{File: file, start: p.line, source: newSourceLines(p.text), Body: body}
	if body[0] != '{' {
		return nil, d.Errorf("", "it is no object: want apiVersion, kind and so on")
	}
	return d.flattenList()
}

// asJSON is the document as JSON. JSON itself is left alone, which is much faster than taking it for YAML.
func (p streamPart) asJSON() ([]byte, *Error) {
	text := bytes.TrimSpace(p.text)
	if bytes.HasPrefix(text, []byte("{")) && json.Valid(text) {
		return text, nil
	}
	if len(text) > mostYAML {
		return nil, &Error{Line: p.line, Why: fmt.Sprintf(
			"neither JSON nor less than %d MiB of YAML; convert it to JSON or split it", mostYAML>>20)}
	}
	out, err := yaml.YAMLToJSONStrict(p.text)
	if err != nil && bytes.Contains(p.text, []byte("<<")) { // what overrides a merged key counts as a second one there
		out, err = yaml.YAMLToJSON(p.text)
	}
	if err == nil { // it reads the first document and leaves the rest alone
		err = onlyDocument(p.text)
	}
	if err != nil {
		line, why := yamlError(err)
		return nil, &Error{Line: p.line + max(line, 1) - 1, Why: "neither JSON nor YAML: " + why}
	}
	return out, nil
}

// onlyDocument refuses text behind the end of the YAML document, such as a line that is indented less than the first.
func onlyDocument(text []byte) error {
	d := yamlv3.NewDecoder(bytes.NewReader(text))
	var n yamlv3.Node
	if err := d.Decode(&n); err != nil {
		return nil // there is none, or it was read otherwise
	}
	if err := d.Decode(&n); !errors.Is(err, io.EOF) {
		return cmp.Or(err, errors.New("it has a second document that no line of --- begins"))
	}
	return nil
}

// yamlError takes the line, counted within the document, out of the words of the YAML library.
func yamlError(err error) (line int, why string) {
	why = strings.TrimPrefix(err.Error(), "yaml: ")
	why = strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(why, "unmarshal errors:")), "yaml: ")
	m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(why)
	if m == nil {
		return 0, why
	}
	line, _ = strconv.Atoi(m[1]) // digits
	return line, strings.TrimPrefix(why, m[0])
}

// flattenList reads the head of the object, and of a List the items instead.
func (d Document) flattenList() ([]Document, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name         string `json:"name"`
			GenerateName string `json:"generateName"`
			Namespace    string `json:"namespace"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(d.Body, &head); err != nil {
		return nil, d.decodingError(err, nil)
	}
	d.APIVersion, d.Kind = head.APIVersion, head.Kind
	if head.Items == nil || !strings.HasSuffix(head.Kind, "List") {
		d.Namespace, d.Name = head.Metadata.Namespace, head.Metadata.Name
		if d.Name == "" {
			d.Name = strings.TrimSuffix(head.Metadata.GenerateName, "-")
		}
		return []Document{d}, nil
	}
	var out []Document
	for i, item := range head.Items {
		one := Document{File: d.File, start: d.start, source: d.source, Body: item,
			within: pathText(d.within, fmt.Sprintf("items[%d]", i))}
		docs, err := one.flattenList()
		if err != nil {
			return nil, err
		}
		for j := range docs { // the items of a typed list need not repeat its kind
			if docs[j].Kind == "" && head.Kind != "List" {
				docs[j].Kind, docs[j].APIVersion = strings.TrimSuffix(head.Kind, "List"), head.APIVersion
			}
		}
		out = append(out, docs...)
	}
	return out, nil
}

// Remade is the document with what was made of its object in its place. Complaints still point at the original.
func (d Document) Remade(body []byte) (Document, error) {
	d.Body, d.APIVersion, d.Kind = body, "", ""
	docs, err := d.flattenList()
	if err != nil {
		return d, err
	}
	return docs[0], nil
}

// Object names the document's object: kind and name.
func (d Document) Object() string { return strings.TrimSpace(d.Kind + " " + d.Name) }

// Errorf is a complaint about a field of the object, or about all of it if the field is empty.
func (d Document) Errorf(field, format string, args ...any) *Error {
	return &Error{File: d.File, Line: d.Line(field), Object: d.Object(), Field: field,
		Why: fmt.Sprintf(format, args...)}
}

func pathText(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "" || strings.HasPrefix(b, "["):
		return a + b
	}
	return a + "." + b
}
