// Package archive packs files so that the same content gives the same bytes, whenever and wherever: no times, no
// owners. It knows the forms that Lambda and people at a terminal take, and not what is in them.
package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// MaxZipBytes limits the zip of a function. Lambda takes 50 MB; small ones start faster.
const MaxZipBytes = 15_000_000

// ZipFunction returns a zip with the program as an executable file bootstrap. It fails when the zip is larger than
// MaxZipBytes.
func ZipFunction(program []byte) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	h := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate}
	h.SetMode(0o755)
	w, err := z.CreateHeader(h)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	if out.Len() > MaxZipBytes {
		return nil, fmt.Errorf("%d bytes, more than %d: look what it links (go tool nm -size -sort size)", out.Len(),
			MaxZipBytes)
	}
	return out.Bytes(), nil
}

// File is a file of an archive. Mode has its permission bits.
type File struct {
	Name    string
	Mode    int64
	Content []byte
}

// TarGzip returns the files as a compressed tar archive, in the order given.
func TarGzip(files []File) ([]byte, error) {
	var out bytes.Buffer
	g, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(g)
	for _, f := range files {
		h := &tar.Header{Name: f.Name, Mode: f.Mode, Size: int64(len(f.Content)), Typeflag: tar.TypeReg}
		if err := t.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
		if _, err := t.Write(f.Content); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
	}
	if err := errors.Join(t.Close(), g.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
