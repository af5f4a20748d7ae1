package objects

import (
	"slices"
	"sync"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
)

// fewTypes are read once.
var fewTypes = sync.OnceValue(func() instancetypes.Catalog {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		panic(err)
	}
	names := []string{"c5.large", "c5.xlarge", "m5.large", "m5.xlarge", "m5.2xlarge", "r5.large"}
	c.Types = slices.DeleteFunc(c.Types, func(t instancetypes.Facts) bool { return !slices.Contains(names, t.Name) })
	return c
})

// FewTypes returns the catalog of small worlds: six real types, so that launches name few enough offerings to reason
// about, and offerings run out. It panics when the built-in catalog cannot be read.
func FewTypes() instancetypes.Catalog { return fewTypes() }
