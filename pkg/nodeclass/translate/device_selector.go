package translate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// deviceSelector is a conjunction of equations about a device, the form in which DeviceClasses select devices: whose it
// is, and what its attributes say.
type deviceSelector struct {
	driver     string
	attributes []deviceAttribute
}

// deviceAttribute is an attribute with the value that it must have: a string, a bool or an int64.
type deviceAttribute struct {
	domain, name string
	value        any
}

// selects reports whether the device of that driver is selected.
func (s deviceSelector) selects(driver string, d *resourcev1.Device) bool {
	if driver != s.driver {
		return false
	}
	return !slices.ContainsFunc(s.attributes, func(a deviceAttribute) bool {
		return attributeOf(driver, d, a.domain,
			a.name) != a.value
	})
}

// attributeOf is the value of an attribute, nil if there is none. A name without a domain is in that of the driver.
func attributeOf(driver string, d *resourcev1.Device, domain, name string) any {
	has, ok := d.Attributes[resourcev1.QualifiedName(domain+"/"+name)]
	if !ok && domain == driver {
		has = d.Attributes[resourcev1.QualifiedName(name)]
	}
	switch {
	case has.StringValue != nil:
		return *has.StringValue
	case has.BoolValue != nil:
		return *has.BoolValue
	case has.IntValue != nil:
		return *has.IntValue
	}
	return nil
}

// deviceSelectorFrom reads the selectors of a DeviceClass, all of which must hold. Of CEL it understands equations
// about device.driver and device.attributes, joined by &&; the error says what it does not.
func deviceSelectorFrom(in []resourcev1.DeviceSelector) (deviceSelector, error) {
	var out deviceSelector
	for _, s := range in {
		if s.CEL == nil {
			return deviceSelector{}, errors.New("a selector of it is not CEL")
		}
		p := selectorParser{rest: s.CEL.Expression, out: &out}
		p.next()
		if !p.all() || p.token != "" {
			return deviceSelector{}, fmt.Errorf("its selector is more than equations of device.driver and device.attributes joined by &&: %.200s", s.CEL.Expression)
		}
	}
	if out.driver == "" {
		return deviceSelector{}, errors.New("no selector of it says device.driver == a name")
	}
	return out, nil
}

// selectorParser reads one expression. The token is empty at the end, and a quotation mark before the text of a string.
type selectorParser struct {
	rest, token string
	out         *deviceSelector
}

const (
	opString  = `"`
	opInvalid = "\x00"
)

// next reads the next token.
func (p *selectorParser) next() {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	n := 0
	for n < len(p.rest) && wordByte(p.rest[n]) {
		n++
	}
	switch {
	case p.rest == "":
		p.token = ""
		return
	case n > 0:
	case strings.HasPrefix(p.rest, "&&") || strings.HasPrefix(p.rest, "=="):
		n = 2
	case p.rest[0] == '"' || p.rest[0] == '\'':
		end := strings.IndexByte(p.rest[1:], p.rest[0])
		// escapes, and strings in three marks
		if end < 0 || strings.ContainsAny(p.rest[1:end+1], "\\\n") || strings.HasPrefix(p.rest[end+2:], p.rest[:1]) {
			p.token = opInvalid
			return
		}
		p.token, p.rest = opString+p.rest[1:end+1], p.rest[end+2:]
		return
	default:
		n = 1
	}
	p.token, p.rest = p.rest[:n], p.rest[n:]
}

func wordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// take steps over the token if it is this one.
func (p *selectorParser) take(token string) bool {
	if p.token != token {
		return false
	}
	p.next()
	return true
}

// all reads equations joined by &&, in parentheses or not.
func (p *selectorParser) all() bool {
	for {
		if p.take("(") {
			if !p.all() || !p.take(")") {
				return false
			}
		} else if !p.equation() {
			return false
		}
		if !p.take("&&") {
			return true
		}
	}
}

// equation reads "field == literal", either way round, or an attribute alone that is to be true.
func (p *selectorParser) equation() bool {
	if p.token != "device" {
		value, ok := p.literal()
		if !ok || !p.take("==") {
			return false
		}
		domain, name, ok := p.field()
		return ok && p.require(domain, name, value)
	}
	domain, name, ok := p.field()
	if !ok {
		return false
	}
	if !p.take("==") {
		return domain != "" && p.require(domain, name, true)
	}
	value, ok := p.literal()
	return ok && p.require(domain, name, value)
}

// require adds an equation; that of the driver has no domain. Two drivers at once are a mistake that nobody need count
// devices for.
func (p *selectorParser) require(domain, name string, value any) bool {
	if domain != "" {
		p.out.attributes = append(p.out.attributes, deviceAttribute{domain, name, value})
		return true
	}
	driver, ok := value.(string)
	if !ok || driver == "" || p.out.driver != "" && p.out.driver != driver {
		return false
	}
	p.out.driver = driver
	return true
}

// field reads device.driver, device.attributes["domain"].name or device.attributes["domain"]["name"].
func (p *selectorParser) field() (domain, name string, ok bool) {
	if !p.take("device") || !p.take(".") {
		return "", "", false
	}
	if p.take("driver") {
		return "", "", true
	}
	if !p.take("attributes") {
		return "", "", false
	}
	if domain, ok = p.index(); !ok || domain == "" {
		return "", "", false
	}
	if p.take(".") {
		name = p.token
		ok = name != "" && wordByte(name[0])
		p.next()
		return domain, name, ok && p.token != "("
	}
	name, ok = p.index()
	return domain, name, ok
}

// index reads ["text"].
func (p *selectorParser) index() (string, bool) {
	if !p.take("[") {
		return "", false
	}
	text, ok := strings.CutPrefix(p.token, opString)
	p.next()
	return text, p.take("]") && ok
}

// literal reads a string, true, false, or a number that is not negative.
func (p *selectorParser) literal() (any, bool) {
	token := p.token
	p.next()
	if text, ok := strings.CutPrefix(token, opString); ok {
		return text, true
	}
	if token == "true" || token == "false" {
		return token == "true", true
	}
	n, err := strconv.ParseInt(token, 10, 64)
	return n, err == nil
}
