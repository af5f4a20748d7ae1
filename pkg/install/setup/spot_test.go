package setup_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// spot counts how often its role was asked for.
type spot struct {
	asked int
	err   error
}

func (s *spot) EnsureRole(context.Context) error {
	s.asked++
	return s.err
}

func TestTheRoleOfSpotIsMade(t *testing.T) {
	const byHand = "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
	for name, c := range map[string]struct {
		observe, isolated bool
		err               error
		asked             int
		says              string
	}{
		"act":     {asked: 1},
		"refused": {err: errors.New("AccessDenied"), asked: 1, says: byHand},
		"observe": {observe: true},
		"no IAM":  {isolated: true, says: byHand},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			role := &spot{err: c.err}
			s := newSetup(&world{objects: map[string]*unstructured.Unstructured{}})
			s.Observe, s.Log = c.observe, slog.New(slog.NewTextHandler(&said, nil))
			if !c.isolated {
				s.SpotRole = role
			}
			if _, err := s.InstallObjects(t.Context()); err != nil {
				t.Fatal(err) // whatever becomes of spot
			}
			if role.asked != c.asked || !strings.Contains(said.String(), c.says) || c.says == "" && strings.Contains(said.String(), byHand) {
				t.Errorf("asked %d times, want %d; said %q, want %q", role.asked, c.asked, said.String(), c.says)
			}
		})
	}
}
