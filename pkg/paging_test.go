package pkg_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every list of an SDK is read by paging.Bounded, which says where it ends before its end.
func TestListsAreReadWithinBounds(t *testing.T) {
	lists := 0
	for _, folder := range []string{"app", "cli", "controllers", "install", "providers"} {
		err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			n := len(regexp.MustCompile(`\bNew\w+Paginator\(`).FindAll(text, -1))
			lists += n
			if bounded := strings.Count(string(text), "paging.Bounded("); bounded != n || strings.Contains(string(text), ".HasMorePages(") {
				t.Errorf("%s: %d paginators, %d of them in paging.Bounded", path, n, bounded)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if lists < 20 {
		t.Errorf("only %d lists found", lists)
	}
}
