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

// selectsDevice reports whether the device of that driver is selected.
func (s deviceSelector) selectsDevice(driver string, d *resourcev1.Device) bool {
	if driver != s.driver {
		return false
	}
	return !slices.ContainsFunc(s.attributes, func(a deviceAttribute) bool {
		return attributeOf(driver, d, a.domain,
			a.name) != a.value
	})
}

// sameAs reports whether both select the same devices.
func (s deviceSelector) sameAs(o deviceSelector) bool {
	within := func(a, b []deviceAttribute) bool {
		return !slices.ContainsFunc(a, func(x deviceAttribute) bool { return !slices.Contains(b, x) })
	}
	return s.driver == o.driver && within(s.attributes, o.attributes) && within(o.attributes, s.attributes)
}

// apartFrom reports whether no device is selected by both.
func (s deviceSelector) apartFrom(o deviceSelector) bool {
	return s.driver != o.driver || slices.ContainsFunc(s.attributes, func(a deviceAttribute) bool {
		return slices.ContainsFunc(o.attributes, func(b deviceAttribute) bool {
			return a.domain == b.domain && a.name == b.name && a.value != b.value
		})
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
		p.readToken()
		if !p.readConjunction() || p.token != "" {
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

// readToken reads the next token.
func (p *selectorParser) readToken() {
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

// takeToken steps over the token if it is this one.
func (p *selectorParser) takeToken(token string) bool {
	if p.token != token {
		return false
	}
	p.readToken()
	return true
}

// readConjunction reads equations joined by &&, in parentheses or not.
func (p *selectorParser) readConjunction() bool {
	for {
		if p.takeToken("(") {
			if !p.readConjunction() || !p.takeToken(")") {
				return false
			}
		} else if !p.readEquation() {
			return false
		}
		if !p.takeToken("&&") {
			return true
		}
	}
}

// readEquation reads "field == literal", either way round, or an attribute alone that is to be true.
func (p *selectorParser) readEquation() bool {
	if p.token != "device" {
		value, ok := p.readLiteral()
		if !ok || !p.takeToken("==") {
			return false
		}
		domain, name, ok := p.readField()
		return ok && p.addRequirement(domain, name, value)
	}
	domain, name, ok := p.readField()
	if !ok {
		return false
	}
	if !p.takeToken("==") {
		return domain != "" && p.addRequirement(domain, name, true)
	}
	value, ok := p.readLiteral()
	return ok && p.addRequirement(domain, name, value)
}

// addRequirement adds an equation; that of the driver has no domain. Two drivers at once are a mistake that nobody need
// count devices for.
func (p *selectorParser) addRequirement(domain, name string, value any) bool {
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

// readField reads device.driver, device.attributes["domain"].name or device.attributes["domain"]["name"].
func (p *selectorParser) readField() (domain, name string, ok bool) {
	if !p.takeToken("device") || !p.takeToken(".") {
		return "", "", false
	}
	if p.takeToken("driver") {
		return "", "", true
	}
	if !p.takeToken("attributes") {
		return "", "", false
	}
	if domain, ok = p.readIndex(); !ok || domain == "" {
		return "", "", false
	}
	if p.takeToken(".") {
		name = p.token
		ok = name != "" && wordByte(name[0])
		p.readToken()
		return domain, name, ok && p.token != "("
	}
	name, ok = p.readIndex()
	return domain, name, ok
}

// readIndex reads ["text"].
func (p *selectorParser) readIndex() (string, bool) {
	if !p.takeToken("[") {
		return "", false
	}
	text, ok := strings.CutPrefix(p.token, opString)
	p.readToken()
	return text, p.takeToken("]") && ok
}

// readLiteral reads a string, true, false, or a number that is not negative.
func (p *selectorParser) readLiteral() (any, bool) {
	token := p.token
	p.readToken()
	if text, ok := strings.CutPrefix(token, opString); ok {
		return text, true
	}
	if token == "true" || token == "false" {
		return token == "true", true
	}
	n, err := strconv.ParseInt(token, 10, 64)
	return n, err == nil
}
