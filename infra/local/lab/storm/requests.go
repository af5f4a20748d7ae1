package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"joiner.sh/infra/local/controlplane/client"
)

// mostTold is how many kinds of requests are told one by one.
const mostTold = 40

// audited is what is read of an audit event.
type audited struct {
	Verb      string `json:"verb"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	User struct {
		Groups []string `json:"groups"`
	} `json:"user"`
}

// ledgerOf is how many requests the functions made to the API server, by function, verb and resource.
type ledgerOf map[string]int

// countRequests returns the functions' requests since the audit log had that size, and its size now.
func (s *storm) countRequests(from int64) (out ledgerOf, size int64, err error) {
	f, err := os.Open(filepath.Join(s.dir, client.AuditFile))
	if err != nil {
		return nil, 0, fmt.Errorf("read audit log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, 0, fmt.Errorf("read audit log: %w", err)
	}
	out = ledgerOf{}
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return out, from, nil // of a line that is being written nothing is counted
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read audit log: %w", err)
		}
		from += int64(len(line))
		var e audited
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, 0, fmt.Errorf("read audit log: %w", err)
		}
		if i := slices.IndexFunc(e.User.Groups, func(g string) bool {
			return strings.HasPrefix(g,
				"joiner-")
		}); i >= 0 {
			out[strings.TrimPrefix(e.User.Groups[i], "joiner-")+" "+e.requestText()]++
		}
	}
}

// requestText says what was asked. Leases and shared data are few and tell more by their names.
func (e audited) requestText() string {
	out := e.Verb + " " + e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		out += "/" + e.ObjectRef.Subresource
	}
	if e.ObjectRef.Resource == "leases" || e.ObjectRef.Resource == "configmaps" {
		out += " " + e.ObjectRef.Name
	}
	return out
}

func (l ledgerOf) sumRequests() (n int) {
	for _, k := range l {
		n += k
	}
	return n
}

// printRequests prints what was asked for most often.
func (l ledgerOf) printRequests(nodes int) {
	keys := slices.SortedFunc(maps.Keys(l), func(a,
		b string) int {
		return cmp.Or(cmp.Compare(l[b], l[a]), cmp.Compare(a, b))
	})
	fmt.Printf("  the functions made %d requests to the API server, %.1f for each node; most often:\n", l.sumRequests(),
		float64(l.sumRequests())/float64(nodes))
	for _, k := range keys[:min(len(keys), mostTold)] {
		fmt.Printf("    %7d  %6.1f for each node  %s\n", l[k], float64(l[k])/float64(nodes), k)
	}
}
