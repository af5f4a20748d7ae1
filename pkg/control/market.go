package control

import (
	"context"
	"log/slog"
	"time"

	"joiner/pkg/cluster"
)

// market reads what a decision about capacity may see: the cluster, what EC2 sells and what it refused to sell.
type market struct {
	read    Reader
	prices  Prices
	soldOut SoldOut
	rules   cluster.Rules
	now     func() time.Time
	log     *slog.Logger
}

func (m market) snapshot(ctx context.Context) (cluster.Snapshot, error) {
	s, err := m.read.Snapshot(ctx)
	if err != nil {
		return s, err
	}
	var why string
	if s.Catalog, why, err = m.prices.Catalog(ctx); err != nil {
		return s, err
	}
	if why != "" {
		m.log.Warn("catalog: " + why)
	}
	if s.SoldOut, err = m.soldOut.Marks(ctx); err != nil {
		return s, err
	}
	s.Now, s.Rules = m.now(), m.rules
	for i := range s.Classes {
		s.Classes[i].MemoryOverhead, s.Classes[i].ReservedENIs = m.rules.MemoryOverhead, m.rules.ReservedENIs
	}
	return s, nil
}
