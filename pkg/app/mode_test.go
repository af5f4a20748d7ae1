package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/providers/kube"
	"joiner.sh/pkg/providers/store"
	"joiner.sh/pkg/settings"
)

// TestEveryFunctionAsksForPermission looks at every function of the stack: each asks the one permission of the process,
// and has all its ports.
func TestEveryFunctionAsksForPermission(t *testing.T) {
	a := &App{kube: &kube.Client{}, cache: (&kube.Client{}).NewClusterCache(), permission: &writePermission{mode: "observe"}, unavailable: (*store.UnavailableOfferings)(nil), log: slog.New(slog.DiscardHandler), set: settings.Values{DryRunValidation: true, RemoteWrite: settings.RemoteWrite{URL: "https://metrics/write"}}}
	for _, function := range []any{a.newProvision(launch.Cluster{}, "me"), a.newLifecycle("me"), a.newDisrupt("me"), a.newInterruption("x"), a.newRefresh(launch.Cluster{})} {
		v := reflect.ValueOf(function)
		permission, ok := v.FieldByName("Permission").Interface().(controllers.Permission)
		if !ok || permission == nil {
			t.Errorf("%s asks for no permission", v.Type().Name())
			continue
		}
		if may, err := permission(t.Context()); may || err != nil {
			t.Errorf("%s may write in mode observe, error %v", v.Type().Name(), err)
		}
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && field.Type.Kind() == reflect.Interface && v.Field(i).IsNil() &&
				!slices.Contains([]string{"Metrics", "Diary", "Shifts"}, field.Name) {
				t.Errorf("%s.%s is not wired", v.Type().Name(), field.Name)
			}
		}
	}
}

// leader holds the leases of these namespaces.
type leader struct {
	in  []string
	err error

	mu   sync.Mutex
	asks int
}

func (l *leader) LeaseHolder(_ context.Context, namespace, name string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asks++
	if name == "karpenter-leader-election" && slices.Contains(l.in, namespace) {
		return "karpenter-7d9f", l.err
	}
	return "", l.err
}

func TestWhoMayAct(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var log bytes.Buffer
	l := &leader{}
	p := writePermission{mode: "act", namespaces: []string{"kube-system", "karpenter"}, leases: l, believed: 5 * time.Second, now: func() time.Time { return now },
		found: func(namespace, holder string) { log.WriteString(namespace + " " + holder + "\n") }}
	look := func(after time.Duration, want bool) {
		t.Helper()
		now = now.Add(after)
		got, err := p.mayWrite(t.Context())
		if err != nil || got != want {
			t.Errorf("open: %t, error %v; want %t", got, err, want)
		}
	}
	look(0, true)
	l.in = []string{"karpenter"}
	look(4*time.Second, true) // still believes the look before
	look(2*time.Second, false)
	l.in = nil
	look(2*time.Second, false)
	look(4*time.Second, true)
	if log.String() != "karpenter karpenter-7d9f\n" || l.asks != 6 {
		t.Errorf("said %q after %d questions, want the holder once and 6", log.String(), l.asks)
	}
	p.trustUntil(15 * time.Second)
	look(10*time.Second, true)
	if look(4*time.Second, true); l.asks != 6 {
		t.Errorf("%d questions, want none within 15 s when it was told so", l.asks-6)
	}
	now = now.Add(time.Hour)
	l.err = errors.New("the API server is away")
	if open, err := p.mayWrite(t.Context()); open || !errors.Is(err, l.err) {
		t.Errorf("without an answer: open %t, error %v; want closed and the error", open, err)
	}
	l.err, p.mode = nil, "observe"
	look(time.Hour, false)
}
