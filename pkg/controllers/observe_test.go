package controllers_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// readingOrder notes what is read.
type readingOrder struct {
	controllers.Reader
	controllers.UnavailableOfferings
	read []string
}

func (r *readingOrder) ReadSnapshot(context.Context) (cluster.Snapshot, error) {
	r.read = append(r.read, "cluster")
	return cluster.Snapshot{Classes: []instancetypes.Class{{Name: "default"}}}, nil
}

func (r *readingOrder) ReadCatalog(context.Context) (instancetypes.Catalog, string, error) {
	r.read = append(r.read, "catalog")
	return instancetypes.Catalog{Region: "us-west-2"}, "", nil
}

func (r *readingOrder) ListUnavailable(context.Context) ([]instancetypes.UnavailableOffering, error) {
	r.read = append(r.read, "marks")
	return nil, nil
}

// Notices that come while the catalog is read are in the snapshot, with the marks that they made before.
func TestTheClusterIsReadAfterTheCatalogAndBeforeMarks(t *testing.T) {
	r := &readingOrder{}
	s, err := controllers.Observer{Read: r, Prices: r, Unavailable: r, Now: time.Now,
		Log: slog.New(slog.DiscardHandler)}.ReadSnapshot(t.Context())
	if got := strings.Join(r.read, " "); err != nil || got != "catalog cluster marks" || s.Catalog.Region != "us-west-2" {
		t.Errorf("read %q, catalog of %q, error %v", got, s.Catalog.Region, err)
	}
}

// Classes are as the settings have them: what a VM keeps of the memory, reserved interfaces, reservations, IPv6.
func TestClassesFollowTheSettings(t *testing.T) {
	r := &readingOrder{}
	s, err := controllers.Observer{Read: r, Prices: r, Unavailable: r, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Rules: cluster.Settings{MemoryOverhead: 0.08, ReservedENIs: 2, OpenReservations: true, IPv6: true}}.ReadSnapshot(t.Context())
	if err != nil || len(s.Classes) != 1 {
		t.Fatalf("%d classes, %v", len(s.Classes), err)
	}
	if c := s.Classes[0]; c.MemoryOverhead != 0.08 || c.ReservedENIs != 2 || !c.OpenReservations || !c.IPv6 {
		t.Errorf("the class is %+v", c)
	}
}

// failingParts are parts of a look of which one cannot be read.
type failingParts struct {
	readingOrder
	controllers.Rollouts
	fails string
}

var errUnreadable = errors.New("planted: time-out")

func (p *failingParts) errorOf(part string) error {
	if p.fails == part {
		return errUnreadable
	}
	return nil
}

func (p *failingParts) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	s, _ := p.readingOrder.ReadSnapshot(ctx)
	return s, p.errorOf("cluster")
}

func (p *failingParts) ReadCatalog(ctx context.Context) (instancetypes.Catalog, string, error) {
	c, why, _ := p.readingOrder.ReadCatalog(ctx)
	return c, why, p.errorOf("catalog")
}

func (p *failingParts) ListUnavailable(ctx context.Context) ([]instancetypes.UnavailableOffering, error) {
	_, _ = p.readingOrder.ListUnavailable(ctx)
	return nil, p.errorOf("marks")
}

func (p *failingParts) AddRollouts(_ context.Context, s cluster.Snapshot) (cluster.Snapshot, error) {
	p.read = append(p.read, "rollouts")
	return s, p.errorOf("rollouts")
}

// A part of a look that cannot be read ends the look: a cluster without objects, without what is unavailable, or without
// what a NodeRollout holds back is no cluster to decide about.
func TestALookWithoutOneOfItsPartsIsNone(t *testing.T) {
	for fails, read := range map[string]string{"catalog": "catalog", "cluster": "catalog cluster",
		"marks": "catalog cluster marks", "rollouts": "catalog cluster marks rollouts"} {
		p := &failingParts{fails: fails}
		_, err := controllers.Observer{Read: p, Prices: p, Unavailable: p, Rollouts: p, Now: time.Now,
			Log: slog.New(slog.DiscardHandler)}.ReadSnapshot(t.Context())
		if got := strings.Join(p.read, " "); !errors.Is(err, errUnreadable) || got != read {
			t.Errorf("without %s: read %q, want %q; error %v", fails, got, read, err)
		}
	}
}
