package bootstrap

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"strings"
)

// Types of the parts of MIME user data.
const (
	boundary    = "//"
	typeShell   = `text/x-shellscript; charset="us-ascii"`
	typeNodeadm = "application/node.eks.aws"
)

// part is one entry of MIME user data. Header always has a Content-Type.
type part struct {
	header textproto.MIMEHeader
	body   string
}

func newPart(contentType, body string) part {
	return part{header: textproto.MIMEHeader{"Content-Type": {contentType}}, body: body}
}

// isMIME reports whether the text is a MIME message.
func isMIME(text string) bool {
	return strings.HasPrefix(text, "MIME-Version:") || strings.HasPrefix(text, "Content-Type:")
}

// parseMIME returns the parts of a message; a message that is not multipart is one part.
func parseMIME(text string) ([]part, error) {
	r := textproto.NewReader(bufio.NewReader(strings.NewReader(text)))
	header, err := r.ReadMIMEHeader()
	if err != nil {
		return nil, malformed("spec.userData has a malformed MIME header: %v", err)
	}
	media, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return nil, malformed("spec.userData has a malformed MIME Content-Type: %v", err)
	}
	if !strings.HasPrefix(media, "multipart/") {
		body, err := io.ReadAll(r.R)
		if err != nil {
			return nil, malformed("spec.userData cannot be read as MIME: %v", err)
		}
		header.Del("MIME-Version")
		return []part{{header: header, body: string(body)}}, nil
	}
	if params["boundary"] == "" {
		return nil, malformed("spec.userData is MIME multipart without a boundary")
	}
	return readParts(multipart.NewReader(r.R, params["boundary"]))
}

func readParts(r *multipart.Reader) ([]part, error) {
	var out []part
	for {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, malformed("spec.userData is malformed MIME multipart: %v", err)
		}
		body, err := io.ReadAll(p)
		if err != nil {
			return nil, malformed("spec.userData is malformed MIME multipart: %v", err)
		}
		out = append(out, part{header: p.Header, body: string(body)})
	}
}

// writeMIME writes one multipart message, without carriage returns, which cloud-init does not need and shells dislike.
func writeMIME(parts []part) (string, error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary(boundary); err != nil {
		return "", malformed("set MIME boundary: %v", err)
	}
	b.WriteString("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"" + boundary + "\"\n\n")
	for _, p := range parts {
		pw, err := w.CreatePart(p.header)
		if err != nil {
			return "", malformed("write MIME part: %v", err)
		}
		if _, err := io.WriteString(pw, p.body); err != nil {
			return "", malformed("write MIME part: %v", err)
		}
	}
	if err := w.Close(); err != nil {
		return "", malformed("write MIME: %v", err)
	}
	return strings.ReplaceAll(b.String(), "\r", ""), nil
}
