package bootstrap

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"regexp"
	"slices"
	"strings"
)

// Types of the parts of MIME user data.
const (
	firstBoundary = "//" // longer where a part holds it
	typeShell     = `text/x-shellscript; charset="us-ascii"`
	typeNodeadm   = "application/node.eks.aws"
	contentType   = "Content-Type"
)

// mimePart is one entry of MIME user data.
type mimePart struct {
	header map[string][]string // by canonical name
	body   string
}

func newPart(mediaType, body string) mimePart {
	return mimePart{header: map[string][]string{contentType: {mediaType}}, body: body}
}

// isMIME reports whether the text is a MIME message, blank lines before it or not. Names of headers have no case.
func isMIME(text string) bool {
	name, _, found := strings.Cut(strings.TrimSpace(text), ":")
	return found && (strings.EqualFold(name, "MIME-Version") || strings.EqualFold(name, contentType))
}

// cloudInitTypes are the types of what its first line explains to cloud-init, by the beginning of that line; the longer
// of two stands first.
func cloudInitTypes() [][2]string {
	return [][2]string{
		{"#!", typeShell}, {"#cloud-config-archive", "text/cloud-config-archive"},
		{"#cloud-config-jsonp", "text/cloud-config-jsonp"}, {"#cloud-config", "text/cloud-config"},
		{"#cloud-boothook", "text/cloud-boothook"}, {"#include-once", "text/x-include-once-url"},
		{"#include", "text/x-include-url"}, {"#part-handler", "text/part-handler"}, {"## template: jinja", "text/jinja2"},
	}
}

// cloudInitType is the type of a text that explains itself to cloud-init, empty for other texts.
func cloudInitType(text string) string {
	text = strings.TrimLeft(text, " \t\r\n")
	for _, t := range cloudInitTypes() {
		if strings.HasPrefix(text, t[0]) {
			return t[1]
		}
	}
	return ""
}

// parseMIME returns the parts of a message; a message that is not multipart is one part.
func parseMIME(text string) ([]mimePart, error) {
	whole, err := splitMessage(strings.TrimLeft(text, " \t\r\n"))
	if err != nil {
		return nil, err
	}
	media, params, err := mime.ParseMediaType(strings.Join(whole.header[contentType], ""))
	if err != nil {
		return nil, malformedError("spec.userData has a malformed MIME Content-Type: %v", err)
	}
	if !strings.HasPrefix(media, "multipart/") {
		delete(whole.header, "Mime-Version")
		return []mimePart{whole}, nil
	}
	if params["boundary"] == "" {
		return nil, malformedError("spec.userData is MIME multipart without a boundary")
	}
	return readParts(whole.body, params["boundary"])
}

// splitMessage splits a message into header and body. It is read as the only part of a multipart body, whose parts have
// the same form.
func splitMessage(text string) (mimePart, error) {
	around := "joiner"
	for strings.Contains(text, "--"+around) {
		around += "-"
	}
	parts, err := readParts("--"+around+"\n"+text+"\n--"+around+"--\n", around)
	if err != nil {
		return mimePart{}, err
	}
	if len(parts) != 1 {
		return mimePart{}, malformedError("spec.userData is malformed MIME: it has no header")
	}
	return parts[0], nil
}

// endHeaders puts the empty line behind each header that lacks it: mail programs and cloud-init take a line that is no
// header for the first one of the body.
func endHeaders(body, boundary string) string {
	header := regexp.MustCompile(`^([!-9;-~]+:|[ \t])`)
	var b strings.Builder
	within := false
	for line := range strings.Lines(body) {
		text := strings.TrimRight(line, " \t\r\n")
		if within && text != "" && !header.MatchString(line) {
			b.WriteString("\n")
		}
		within = text == "--"+boundary || within && text != "" && header.MatchString(line)
		b.WriteString(line)
	}
	return b.String()
}

func readParts(body, boundary string) ([]mimePart, error) {
	body = endHeaders(body, boundary)
	var out []mimePart
	for r := multipart.NewReader(strings.NewReader(body), boundary); ; {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			if len(out) == 0 && strings.TrimSpace(body) != "" {
				return nil, malformedError("spec.userData is MIME in which the boundary %q never stands, so that all of it would be lost", boundary)
			}
			return out, nil
		}
		if err != nil {
			return nil, malformedError("spec.userData is malformed MIME: %v", err)
		}
		text, err := io.ReadAll(p)
		if err != nil {
			return nil, malformedError("spec.userData is malformed MIME: %v", err)
		}
		out = append(out, mimePart{header: p.Header, body: string(text)})
	}
}

// writeMIME writes one multipart message, without carriage returns, which cloud-init does not need and shells dislike.
func writeMIME(parts []mimePart) (string, error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	boundary := firstBoundary
	for slices.ContainsFunc(parts, func(p mimePart) bool { return strings.Contains(p.body, "--"+boundary) }) {
		boundary += "/"
	}
	if err := w.SetBoundary(boundary); err != nil {
		return "", malformedError("set MIME boundary: %v", err)
	}
	b.WriteString("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"" + boundary + "\"\n\n")
	for _, p := range parts {
		pw, err := w.CreatePart(p.header)
		if err != nil {
			return "", malformedError("write MIME part: %v", err)
		}
		if _, err := io.WriteString(pw, p.body); err != nil {
			return "", malformedError("write MIME part: %v", err)
		}
	}
	if err := w.Close(); err != nil {
		return "", malformedError("write MIME: %v", err)
	}
	return strings.ReplaceAll(b.String(), "\r", ""), nil
}
