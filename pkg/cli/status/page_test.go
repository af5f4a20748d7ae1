package status

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
)

func pageOf(t *testing.T, v View) string {
	t.Helper()
	var b strings.Builder
	if err := WritePage(&b, "shop", v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A page shows what a price is made of, and where the time for it went.
func TestPageShowsCostsAndTimes(t *testing.T) {
	n := Node{Name: "a", Type: "m5.large", HourlyUSD: 0.1034, NodeUSD: 0.0074, Priced: true,
		Parts: instancetypes.NodeCost{Disks: 0.0024, Address: 0.005}}
	p := NodePool{Name: "general", Nodes: []Node{n, n}}
	for _, n := range p.Nodes {
		p.Sum = p.Sum.addSum(n)
	}
	page := pageOf(t, View{Pools: []NodePool{p}, Total: p.Sum, Steps: []Step{{"reading the cluster", 1234 * time.Millisecond}, {"deciding", 60 * time.Millisecond}}})
	for want, times := range map[string]int{
		">instance 0.0960<": 2, ">volumes 0.0024<": 2, ">IPv4 0.0050<": 2, // of each node
		">instance 0.1920<": 1, ">volumes 0.0048<": 1, ">IPv4 0.0100<": 1, // of all
		"Time went into reading the cluster 1.23 s, deciding 0.06 s.": 1,
	} {
		if got := strings.Count(page, want); got != times {
			t.Errorf("%q is there %d times, want %d", want, got, times)
		}
	}
	if got := FormatParts(0.0984, instancetypes.NodeCost{Disks: 0.0024}); !cmp.Equal(got, []string{"instance 0.0960", "volumes 0.0024"}) {
		t.Errorf("without an address: %v", got)
	}
	if got := FormatParts(0.1384, instancetypes.NodeCost{Disks: 0.0024, Declared: 0.04}); !cmp.Equal(got, []string{"instance 0.0960", "volumes 0.0024", "declared 0.0400"}) {
		t.Errorf("with what its owner declares it is %v", got)
	}
	if got := FormatParts(0.096, instancetypes.NodeCost{}); got != nil {
		t.Errorf("of an instance alone: %v", got)
	}
}

// Markup in any text of a view is text on the page: its tags and their attributes are those of a page without it. A
// browser runs and loads nothing, and takes the page's own style sheet.
func TestPageHoldsMarkupAsText(t *testing.T) {
	const hostile = `"'><script>alert(1)</script><img src=x onerror=alert(1)><style>*{}</style><!--</title><a href="javascript:alert(1)` + "`{{.}}"
	tags := func(text string) []string {
		page := pageOf(t, plantedView(text))
		planted := strings.Count(page, "x-y") + strings.Count(page, "alert(1)")
		if planted < 20 {
			t.Fatalf("the text is on the page %d times", planted)
		}
		page = regexp.MustCompile(`"[^"]*"`).ReplaceAllString(page, `""`) // of attributes: in text quotes are escaped
		return regexp.MustCompile(`<[^>]*>`).FindAllString(page, -1)
	}
	if d := cmp.Diff(tags("x-y"), tags(hostile)); d != "" {
		t.Errorf("-without +with markup:\n%s", d)
	}
	page := pageOf(t, View{})
	sheet := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(page)[1]
	sum := sha256.Sum256([]byte(sheet))
	policy := html.UnescapeString(regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)[1])
	if want := "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; policy != want {
		t.Errorf("policy %s, want %s", policy, want)
	}
	if style := regexp.MustCompile(` style=| on[a-z]+=|<script|src=`).FindString(pageOf(t, plantedView("x-y"))); style != "" {
		t.Errorf("the page has %q, which its policy refuses", style)
	}
}

// plantedView is a view with all that there is, and the text wherever there is one.
func plantedView(text string) View {
	v := View{}
	plantText(reflect.ValueOf(&v).Elem(), text, 0)
	large := v.Pools[0]
	for range MostUnfolded + 1 {
		large.Nodes = append(large.Nodes, large.Nodes[0])
	}
	v.Pools = append(v.Pools, large)
	return v
}

// plantText sets every string within the value to the text, and brings one element into each list and map.
func plantText(v reflect.Value, text string, depth int) {
	if !v.CanSet() || depth > 12 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Struct:
		for i := range v.NumField() {
			plantText(v.Field(i), text, depth+1)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		plantText(v.Elem(), text, depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		plantText(v.Index(0), text, depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		plantText(key, text, depth+1)
		plantText(value, text, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(2)
	case reflect.Float64:
		v.SetFloat(2)
	}
}

// A NodePool with many nodes is folded, and each has its link.
func TestPageFoldsLargeNodePools(t *testing.T) {
	var pools []NodePool
	for i, size := range []int{MostUnfolded, MostUnfolded + 1} {
		p := NodePool{Name: fmt.Sprintf("pool%d", i), Problem: "no subnet"}
		for n := range size {
			p.Nodes = append(p.Nodes, Node{Name: fmt.Sprintf("node-%d", n)})
		}
		pools = append(pools, p)
	}
	page := pageOf(t, View{Pools: pools})
	for i, heading := range []string{"<details open>\n<summary><h2>pool0 ", "<h2>pool1 "} {
		want := fmt.Sprintf("<section id=\"pool-%d\">\n%s", i, heading)
		if !strings.Contains(page, want) || !strings.Contains(page, fmt.Sprintf(`href="#pool-%d"`, i)) {
			t.Errorf("no %q with a link to it", want)
		}
	}
	if want := "<details>\n<summary>each of the 101 nodes</summary>"; strings.Count(page, want) != 1 {
		t.Errorf("%q is not there once", want)
	}
	if n := strings.Count(page, "not ready</span></h2>") + strings.Count(page, "not ready</span></small></h2>"); n != 2 {
		t.Errorf("%d headings say not ready, want 2", n)
	}
}

// What stands for a NodePool with many nodes are its instance types, what costs most first, and no more than 20.
func TestPageSumsUpLargeNodePools(t *testing.T) {
	p := NodePool{Name: "general"}
	for i := range MostUnfolded + 1 {
		n := Node{Name: fmt.Sprintf("node-%d", i), Type: "m5.large", CapacityType: "spot", Phase: "ready", HourlyUSD: 0.05,
			Priced: true, Pods: 3, CPU: FillLevel{Used: 1, Room: 2}, MayGo: i%4 == 0}
		switch {
		case i < mostTypes:
			n.Type, n.HourlyUSD, n.Phase = fmt.Sprintf("c5.%dxlarge", i+1), 1+float64(i), "starting"
		case i < 30:
			n.Phase = "leaving"
		}
		p.Nodes = append(p.Nodes, n)
		p.Sum = p.Sum.addSum(n)
	}
	list, more := SumByType(p.Nodes)
	if len(list) != mostTypes || more != 1 {
		t.Fatalf("%d types and %d more, want %d and 1", len(list), more, mostTypes)
	}
	// 81 of m5.large cost 4.05 USD an hour: more than c5.4xlarge, less than c5.5xlarge
	for at, want := range map[int]string{0: "c5.20xlarge", 15: "c5.5xlarge", 16: "m5.large", 17: "c5.4xlarge"} {
		if list[at].Type != want {
			t.Errorf("at %d is %s, want %s", at, list[at].Type, want)
		}
	}
	large := list[slices.IndexFunc(list, func(s TypeSum) bool { return s.Type == "m5.large" })]
	if got := FormatPhases(large.Phases); got != "71 ready, 10 leaving" || large.Sum.Nodes != 81 || large.Sum.Pods != 243 ||
		large.MayGo != 21 {
		t.Errorf("m5.large: %s, %d nodes, %d pods, %d may go", got, large.Sum.Nodes, large.Sum.Pods, large.MayGo)
	}
	page := pageOf(t, View{Pools: []NodePool{p}, Pending: make([]Pod, MostUnfolded+1)})
	for _, want := range []string{"m5.large <span class=\"why\">spot</span>", "71 ready, 10 leaving", "<p class=\"when\">and 1 more<",
		"<details>\n<summary><h2>Pods that wait <small>101</small>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
