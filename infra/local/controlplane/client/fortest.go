package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Environment variables of tests.
const (
	// KubernetesEnv is the minor version of Kubernetes whose plane and programs tests run; unset: Default.
	KubernetesEnv = "JOINER_KUBERNETES"
	// directory of the plane that tests share; set by RunTests, or by hand to use a running one
	DirEnv = "JOINER_PLANE_DIR"
)

// Default is the minor version of Kubernetes that go.mod of this module has. Programs of another, which has a go.mod of
// its own, end in its name.
const Default = "1.37"

const (
	modulePath   = "joiner.sh"
	testPatience = 5 * time.Minute
)

// Minor is the minor version of Kubernetes whose plane tests run.
func Minor() string { return cmp.Or(os.Getenv(KubernetesEnv), Default) }

// Program is the path, below the root of the repository, of a program of that minor version of Kubernetes.
func Program(name, minor string) string {
	if minor != Default {
		name += "-" + minor
	}
	return filepath.Join(".local", "bin", name)
}

// T is what ForTest needs of a *testing.T or *testing.B.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// M is what RunTests needs of a *testing.M.
type M interface{ Run() int }

// RunTests runs a test binary whose tests share one plane, which the first ForTest starts, and ends the plane
// afterwards:
//
//	func TestMain(m *testing.M) { os.Exit(planectl.RunTests(m)) }
//
// If DirEnv names the directory of a running plane, that one is used and left running. The plane also ends, and removes
// its directory, when the test binary dies.
func RunTests(m M) int {
	if given := os.Getenv(DirEnv); given != "" {
		if _, err := AttachPlane(given); err != nil {
			fmt.Fprintf(os.Stderr, "use the plane that %s names: %v\n", DirEnv, err)
			return 1
		}
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "joiner-plane-")
	if err == nil {
		err = os.Setenv(DirEnv, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "make room for the tests' plane:", err)
		return 1
	}
	code := m.Run()
	if err := endShared(dir); err != nil {
		fmt.Fprintln(os.Stderr, "end the tests' plane:", err)
		code = max(code, 1)
	}
	return code
}

func endShared(dir string) error {
	p, err := findPlane(dir)
	switch {
	case errors.Is(err, os.ErrNotExist): // no test asked for it
	case err != nil:
		return err
	default:
		if err := p.StopPlane(); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// ForTest is the plane that all tests of this test binary share; the first call starts it. The package needs a TestMain
// that calls RunTests. Tests tell themselves apart by namespaces, and by labels on the nodes they make.
func ForTest(t T) *Plane {
	t.Helper()
	dir := os.Getenv(DirEnv)
	if dir == "" {
		t.Fatalf("the test package needs: func TestMain(m *testing.M) { os.Exit(planectl.RunTests(m)) }")
	}
	unlock, err := lockDir(dir) // tests may run in parallel
	if err != nil {
		t.Fatalf("lock the shared plane: %v", err)
	}
	defer unlock()
	p, err := findPlane(dir)
	if err == nil {
		return p
	}
	if !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("find the shared plane: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	defer cancel()
	p, err = StartPlane(ctx, Options{Binary: BinaryForTest(t), Dir: dir, RemoveDir: true})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

// BinaryForTest is the path of joiner-plane, for tests that start planes of their own. It fails the test if there is
// none.
func BinaryForTest(t T) string {
	t.Helper()
	return ProgramForTest(t, "joiner-plane", Minor())
}

// ProgramForTest is the path of a program of that minor version of Kubernetes. It fails the test if there is none.
func ProgramForTest(t T, name, minor string) string {
	t.Helper()
	root, err := repositoryRoot()
	if err != nil {
		t.Fatalf("%v", err)
	}
	file := filepath.Join(root, Program(name, minor))
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("find a program of Kubernetes %s: %v; run: make plane MINOR=%s", minor, err, minor)
	}
	return file
}

// repositoryRoot is the nearest directory upwards whose go.mod is that of the product.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte("module "+modulePath+"\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the repository: no directory above has the go.mod of module %s", modulePath)
		}
	}
}

// lockDir waits until nobody else, in this process or another, holds the directory's test lock.
func lockDir(dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "test.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}
