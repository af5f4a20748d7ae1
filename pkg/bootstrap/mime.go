package bootstrap

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"
)

// Types of the parts of MIME user data.
const (
	boundary    = "//"
	typeShell   = `text/x-shellscript; charset="us-ascii"`
	typeNodeadm = "application/node.eks.aws"
	contentType = "Content-Type"
)

// part is one entry of MIME user data.
type part struct {
	header map[string][]string // by canonical name
	body   string
}

func newPart(mediaType, body string) part {
	return part{header: map[string][]string{contentType: {mediaType}}, body: body}
}

// isMIME reports whether the text is a MIME message, blank lines before it or not.
func isMIME(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "MIME-Version:") || strings.HasPrefix(text, contentType+":")
}

// parseMIME returns the parts of a message; a message that is not multipart is one part.
func parseMIME(text string) ([]part, error) {
	whole, err := message(strings.TrimLeft(text, " \t\r\n"))
	if err != nil {
		return nil, err
	}
	media, params, err := mime.ParseMediaType(strings.Join(whole.header[contentType], ""))
	if err != nil {
		return nil, malformed("spec.userData has a malformed MIME Content-Type: %v", err)
	}
	if !strings.HasPrefix(media, "multipart/") {
		delete(whole.header, "Mime-Version")
		return []part{whole}, nil
	}
	if params["boundary"] == "" {
		return nil, malformed("spec.userData is MIME multipart without a boundary")
	}
	return readParts(whole.body, params["boundary"])
}

// message splits a message into header and body. It is read as the only part of a multipart body, whose parts have the
// same form.
func message(text string) (part, error) {
	around := "joiner"
	for strings.Contains(text, "--"+around) {
		around += "-"
	}
	parts, err := readParts("--"+around+"\n"+text+"\n--"+around+"--\n", around)
	if err != nil {
		return part{}, err
	}
	if len(parts) != 1 {
		return part{}, malformed("spec.userData is malformed MIME: it has no header")
	}
	return parts[0], nil
}

func readParts(body, boundary string) ([]part, error) {
	var out []part
	for r := multipart.NewReader(strings.NewReader(body), boundary); ; {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			if len(out) == 0 && strings.TrimSpace(body) != "" {
				return nil, malformed("spec.userData is MIME in which the boundary %q never stands, so that all of it would be lost", boundary)
			}
			return out, nil
		}
		if err != nil {
			return nil, malformed("spec.userData is malformed MIME: %v", err)
		}
		text, err := io.ReadAll(p)
		if err != nil {
			return nil, malformed("spec.userData is malformed MIME: %v", err)
		}
		out = append(out, part{header: p.Header, body: string(text)})
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
