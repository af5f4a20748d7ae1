package translate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
)

func TestSelectorsThatAreUnderstood(t *testing.T) {
	type equation = deviceAttribute
	both := deviceSelector{driver: "x.com", attributes: []equation{{"x.com", "type", "gpu"}}}
	for expression, want := range map[string]deviceSelector{
		`device.driver == "x.com"`:                                                          {driver: "x.com"},
		`"x.com" == device.driver`:                                                          {driver: "x.com"},
		` ( device.driver=='x.com' ) `:                                                      {driver: "x.com"},
		`device.driver == 'x.com' && device.driver == 'x.com'`:                              {driver: "x.com"},
		`device.driver == 'x.com' && device.attributes['x.com'].type == 'gpu'`:              both,
		"device.driver == 'x.com' &&\n\tdevice.attributes[\"x.com\"][\"type\"] == \"gpu\"":  both,
		`(device.driver == 'x.com') && ('gpu' == device.attributes['x.com'].type)`:          both,
		`device.driver == 'x.com' && (device.attributes['x.com'].type == 'gpu')`:            both,
		`device.driver == 'x.com' && device.attributes['y.com'].rdma`:                       {driver: "x.com", attributes: []equation{{"y.com", "rdma", true}}},
		`device.driver == 'x.com' && device.attributes['y.com'].rdma == false`:              {driver: "x.com", attributes: []equation{{"y.com", "rdma", false}}},
		`device.attributes['y.com'].lanes == 16 && device.driver == 'x.com'`:                {driver: "x.com", attributes: []equation{{"y.com", "lanes", int64(16)}}},
		`device.driver == "x.com" && device.attributes["x.com"].note == "it's && (odd)"`:    {driver: "x.com", attributes: []equation{{"x.com", "note", "it's && (odd)"}}},
		`device.driver == "x.com" && device.attributes["x.com"].note == ""`:                 {driver: "x.com", attributes: []equation{{"x.com", "note", ""}}},
		`device.driver == "x.com" && device.attributes["x.com"].driver == device.driver`:    {},
		`device.driver == 'x.com' || device.driver == 'y.com'`:                              {},
		`device.driver == 'x.com' && !device.attributes['x.com'].shared`:                    {},
		`device.driver == 'x.com' && device.attributes['x.com'].type != 'mig'`:              {},
		`device.driver == 'x.com' && device.attributes['x.com'].name.contains('5090')`:      {},
		`device.driver == 'x.com' && device.attributes['x.com'].isTrue()`:                   {},
		`device.driver == 'x.com' && (device.attributes['x.com'].name.lowerAscii() == 'a')`: {},
		`device.driver == 'x.com' && device.attributes['x.com'].lanes == 8 + 8`:             {},
		`device.driver == 'x.com' && device.attributes['x.com'].lanes == 16u`:               {},
		`device.driver == 'x.com' && device.attributes['x.com'].lanes == -1`:                {},
		`device.driver == 'x.com' && 'y.com' in device.attributes`:                          {},
		`device.driver == 'x.com' && has(device.attributes['y.com'].rdma)`:                  {},
		`device.driver == 'x.com' && device.capacity['x.com'].memory == quantity('1Gi')`:    {},
		`device.driver == 'x.com' && device.attributes['x.com'].type == r'gpu'`:             {},
		`device.driver == 'x.com' && device.attributes['x.com'].type == 'a\'b'`:             {},
		`device.driver == 'x.com' && device.attributes['x.com'].type == """gpu"""`:          {},
		`device.driver == 'x.com' && device.attributes['x.com'].a == true == false`:         {},
		`device.driver == 'x.com' ? true : device.attributes['x.com'].shared`:               {},
		`device.driver == 'x.com' && device.driver == 'y.com'`:                              {},
		`device.driver == 'x.com' &&`:                                                       {},
		`(device.driver == 'x.com'`:                                                         {},
		`device.driver == 'x.com')`:                                                         {},
		`device.driver == 'x.com`:                                                           {},
		`device.driver.startsWith('x')`:                                                     {},
		`device.driver == 1`:                                                                {},
		`device.driver`:                                                                     {},
		`device.attributes[''].type == 'gpu' && device.driver == 'x.com'`:                   {},
		`device.attributes['x.com'].type == 'gpu'`:                                          {},
		`device['driver'] == 'x.com'`:                                                       {},
		`true`:                                                                              {},
		``:                                                                                  {},
	} {
		got, err := deviceSelectorFrom([]resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}})
		if d := cmp.Diff(want, got, cmp.AllowUnexported(deviceSelector{}, deviceAttribute{})); d != "" && want.driver != "" || (err != nil) != (want.driver == "") {
			t.Errorf("%s: error %v (-want +got):\n%s", expression, err, d)
		}
	}
}

func TestSelectorsOfAClassHoldAll(t *testing.T) {
	cel := func(expression string) resourcev1.DeviceSelector {
		return resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}
	}
	got, err := deviceSelectorFrom([]resourcev1.DeviceSelector{cel(`device.driver == "x.com"`), cel(`device.attributes["x.com"].lanes == 16`)})
	if want := (deviceSelector{driver: "x.com", attributes: []deviceAttribute{{"x.com", "lanes", int64(16)}}}); err != nil || !cmp.Equal(want, got, cmp.AllowUnexported(want, want.attributes[0])) {
		t.Errorf("two selectors: %+v, error %v", got, err)
	}
	for _, in := range [][]resourcev1.DeviceSelector{nil, {{}}, {cel(`device.driver == "x.com"`), {}}} {
		if _, err := deviceSelectorFrom(in); err == nil {
			t.Errorf("no error for %+v", in)
		}
	}
}

func TestAttributesThatSelect(t *testing.T) {
	d := read[resourcev1.Device](t, `{name: a, attributes: {type: {string: gpu}, y.com/type: {string: nic}, shared: {bool: true}, lanes: {int: 16}, firmware: {version: 1.2.3}}}`)
	for _, c := range []struct {
		driver string
		a      deviceAttribute
		want   bool
	}{
		{"x.com", deviceAttribute{"x.com", "type", "gpu"}, true},
		// the one with its domain goes before the one without
		{"y.com", deviceAttribute{"y.com", "type", "gpu"}, false},
		{"x.com", deviceAttribute{"y.com", "type", "nic"}, true},
		{"x.com", deviceAttribute{"z.com", "type", "gpu"}, false},
		{"x.com", deviceAttribute{"x.com", "type", "mig"}, false},
		{"x.com", deviceAttribute{"x.com", "shared", true}, true},
		{"x.com", deviceAttribute{"x.com", "shared", "true"}, false},
		{"x.com", deviceAttribute{"x.com", "lanes", int64(16)}, true},
		{"x.com", deviceAttribute{"x.com", "lanes", int64(8)}, false},
		{"x.com", deviceAttribute{"x.com", "firmware", "1.2.3"}, false},
	} {
		if got := (deviceSelector{driver: c.driver, attributes: []deviceAttribute{c.a}}).selectsDevice(c.driver, d); got != c.want {
			t.Errorf("%+v of a device of %s: %t", c.a, c.driver, got)
		}
	}
	if (deviceSelector{driver: "x.com"}).selectsDevice("y.com", d) || !(deviceSelector{driver: "x.com"}).selectsDevice("x.com", d) {
		t.Error("a device is selected by its driver")
	}
}
