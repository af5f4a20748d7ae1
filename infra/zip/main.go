// Command zip packs built functions as Lambda takes them: infra/zip FOLDER... writes FOLDER.zip with FOLDER/bootstrap
// in it. The same binary gives the same bytes, whenever and wherever: no times, no owners. It fails when a zip is
// larger than Lambda and we want it.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
)

// mostBytes is what a zip may have. Lambda takes 50 MB; small ones start faster.
const mostBytes = 15_000_000

func main() {
	for _, folder := range os.Args[1:] {
		if err := write(folder); err != nil {
			log.Fatalf("zip: %v", err)
		}
	}
}

func write(folder string) error {
	binary, err := os.ReadFile(filepath.Join(folder, "bootstrap"))
	if err != nil {
		return err
	}
	packed, err := pack(binary)
	if err != nil {
		return fmt.Errorf("pack %s: %w", folder, err)
	}
	if len(packed) > mostBytes {
		return fmt.Errorf("pack %s: %d bytes, more than %d: look what it links (go tool nm -size -sort size)", folder,
			len(packed), mostBytes)
	}
	fmt.Printf("%8d KiB  %x  %s.zip\n", len(packed)/1024, sha256.Sum256(packed), folder)
	return os.WriteFile(folder+".zip", packed, 0o644)
}

// pack is a zip with the binary as an executable bootstrap.
func pack(binary []byte) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser,
		error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	h := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate}
	h.SetMode(0o755)
	w, err := z.CreateHeader(h)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(binary); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
