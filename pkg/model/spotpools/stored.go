package spotpools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
)

// MaxStored bounds a stored record, in bytes.
const MaxStored = 1 << 20

// Place is where the pools of a record are: zones have the same names in one account and region alone.
type Place struct{ Account, Region string }

// Prefix begins the keys of the records of all clusters whose pools are the same.
func (p Place) Prefix() string { return "spot-pools/" + cmp.Or(p.Account, "0") + "/" + p.Region + "/" }

// KeyOf is the key of a cluster's record.
func (p Place) KeyOf(cluster string) string { return p.Prefix() + cluster + ".json" }

// Encode writes the record in the form that Decode reads. Equal records give equal bytes.
func (r Record) Encode() ([]byte, error) {
	r.Version = Version
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode spot record: %w", err)
	}
	return b, nil
}

// Decode reads a stored record. Whatever of it cannot be is left out, and what is no record at all is an empty one:
// losing a record changes cost and nothing else.
func Decode(b []byte, now time.Time) Record {
	var r Record
	if len(b) > MaxStored || json.Unmarshal(b, &r) != nil {
		return Record{Version: Version}
	}
	return r.Sanitized(now)
}
