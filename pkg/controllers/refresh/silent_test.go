package refresh_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/testing/controllertest"
)

// silentAccount never answers: not about classes, nor about the price list, nor about instance profiles.
type silentAccount struct{ *controllertest.RefreshWorld }

func (s silentAccount) FindAll(ctx context.Context, c *awsv1.EC2NodeClass) nodeclass.Resolved {
	s.RefreshWorld.FindAll(ctx, c)
	<-ctx.Done()
	return nodeclass.Resolved{ImagesErr: ctx.Err(), SubnetsErr: ctx.Err(), GroupsErr: ctx.Err(), ProfileErr: ctx.Err()}
}

func (s silentAccount) ListProfiles(ctx context.Context) ([]nodeclass.Profile, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s silentAccount) Refresh(ctx context.Context) (string, error) {
	_, _ = s.RefreshWorld.Refresh(ctx)
	<-ctx.Done()
	return "", ctx.Err()
}

// Where AWS does not answer, a refresh asks about each class and for the catalog, ends before its time-out and says
// what it could not do. The next one does it.
func TestARefreshThatNobodyAnswersEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := controllertest.NewRefreshWorld()
		for _, name := range []string{"a", "b", "c"} {
			s.AddClass(name)
		}
		r := s.NewRefresh()
		r.Finder, r.Preview, r.Market, r.Every = silentAccount{s}, silentAccount{s}, silentAccount{s}, time.Hour
		ctx, end := context.WithTimeout(t.Context(), 2*time.Minute)
		defer end()
		err := r.Run(ctx)
		if ctx.Err() != nil || err == nil {
			t.Fatalf("the time-out: %v; error: %v", ctx.Err(), err)
		}
		for _, name := range []string{"a", "b", "c"} {
			if !slices.Contains(s.Did, "find for "+name) || !strings.Contains(err.Error(), "refresh EC2NodeClass "+name+": ") {
				t.Errorf("%s: done %v, error %v", name, s.Did, err)
			}
		}
		if !slices.Contains(s.Did, "market") {
			t.Errorf("the catalog was not asked for: %v", s.Did)
		}
		if _, err := s.Run(t); err != nil || len(s.Ready()) != 3 {
			t.Errorf("the next refresh: %v, ready %v", err, s.Ready())
		}
	})
}
