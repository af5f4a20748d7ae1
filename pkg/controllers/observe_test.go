package controllers_test

import (
	"context"
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
	return cluster.Snapshot{}, nil
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
	s, err := controllers.Observer{Read: r, Prices: r, SoldOut: r, Now: time.Now,
		Log: slog.New(slog.DiscardHandler)}.ReadSnapshot(t.Context())
	if got := strings.Join(r.read, " "); err != nil || got != "catalog cluster marks" || s.Catalog.Region != "us-west-2" {
		t.Errorf("read %q, catalog of %q, error %v", got, s.Catalog.Region, err)
	}
}
