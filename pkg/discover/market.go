package discover

import (
	"context"
)

// Market keeps the stored catalog up to date.
type Market struct {
	Store *Store
}

// Refresh stores the catalog that Store serves when none is stored yet.
func (m *Market) Refresh(ctx context.Context) (did string, err error) {
	if _, ok := m.Store.Stored(ctx); ok {
		return "", nil
	}
	c, _, err := m.Store.Catalog(ctx)
	if err != nil {
		return "", err
	}
	return "stored the built-in catalog", m.Store.Put(ctx, c)
}
