// Command zip packs built functions as Lambda takes them: infra/zip FOLDER... writes FOLDER.zip with FOLDER/bootstrap
// in it. The same binary gives the same bytes, whenever and wherever: no times, no owners. It fails when a zip is
// larger than Lambda and we want it.
package main

import (
	"crypto/sha256"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"joiner.sh/infra/archive"
)

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
	packed, err := archive.ZipFunction(binary)
	if err != nil {
		return fmt.Errorf("pack %s: %w", folder, err)
	}
	fmt.Printf("%8d KiB  %x  %s.zip\n", len(packed)/1024, sha256.Sum256(packed), folder)
	return os.WriteFile(folder+".zip", packed, 0o644)
}
