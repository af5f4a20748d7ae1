package spotpools

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// MaxStored bounds a stored record, in bytes.
const MaxStored = 1 << 20

// Prefix begins the keys of all records in a bucket.
const Prefix = "spot-pools/"

// KeyOf is the key of a cluster's record.
func KeyOf(account, region, cluster string) string {
	return Prefix + strings.Join([]string{account, region, cluster}, "/") + ".json"
}

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
	return r.Mended(now)
}
