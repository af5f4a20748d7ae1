package main

import (
	"context"
	"os"
	"testing"

	"joiner/infra/bench/compare/filter"
	"joiner/infra/bench/manifests"
)

func TestDbg(t *testing.T) {
	all := sold(t)
	text, _ := os.ReadFile(os.Getenv("F"))
	c, err := manifests.Read("x", text)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Snapshot(context.Background(), all)
	p, _ := decide(s)
	t.Log(p)
	o, _ := outcomeOf(s, p, asChosen)
	t.Log(filter.Refused(context.Background(), c, o, coming(s)))
	w := withoutEnding(c)
	t.Log(len(c.Pods), len(w.Pods))
	t.Log(filter.Refused(context.Background(), w, o, coming(s)))
}
