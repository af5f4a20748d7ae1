package settings

import (
	"cmp"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"joiner.sh/pkg/model/lists"
)

// bindSetting is a knob of a kind whose values parse reads, if it accepts them.
func bindSetting[V, T any](s Setting, kind Kind, field func(*V) *T, parse func(string) (T, bool)) settingBinding[V] {
	s.Kind = kind
	return settingBinding[V]{s, func(v *V, in string) bool {
		value, ok := parse(in)
		if ok {
			*field(v) = value
		}
		return ok
	}}
}

// within reads what parse does, from the least to the most. NaN is neither.
func within[T cmp.Ordered](least, most T, parse func(string) (T, error)) func(string) (T, bool) {
	return func(in string) (T, bool) {
		x, err := parse(in)
		return x, err == nil && x >= least && x <= most
	}
}

func parseNumber(in string) (float64, error) { return strconv.ParseFloat(in, 64) }

// matches accepts texts that the pattern describes.
func matches(pattern string) func(string) bool {
	return func(in string) bool { return regexp.MustCompile(pattern).MatchString(in) }
}

// textSetting is a knob whose value is taken as it is written, if ok accepts it.
func textSetting[V any](s Setting, field func(*V) *string, ok func(string) bool) settingBinding[V] {
	return bindSetting(s, KindText, field, func(in string) (string, bool) { return in, ok(in) })
}

// choiceSetting is a knob with a few words to choose from, compared exactly.
func choiceSetting[V any, T ~string](s Setting, words []T, field func(*V) *T) settingBinding[V] {
	s.Allowed = orList(words)
	return bindSetting(s, KindChoice, field, func(in string) (T, bool) { return T(in), slices.Contains(words, T(in)) })
}

// boolSetting is a knob that is on or off.
func boolSetting[V any](s Setting, field func(*V) *bool) settingBinding[V] {
	s.Unit, s.Allowed = "true or false", "true or false"
	return bindSetting(s, KindChoice, field, func(in string) (on, ok bool) {
		return in == "true", in == "true" || in == "false"
	})
}

// durationSetting is a knob counted in time, written as Go writes it (90s, 3m, 1h30m).
func durationSetting[V any](s Setting, least, most time.Duration, field func(*V) *time.Duration) settingBinding[V] {
	s.Unit = "duration"
	s.Allowed = fmt.Sprintf("a duration such as 90s, 3m or 1h30m, from %s to %s", shortDuration(least), shortDuration(most))
	return bindSetting(s, KindText, field, within(least, most, time.ParseDuration))
}

// wholeSetting is a knob that counts something.
func wholeSetting[V any](s Setting, least, most int, field func(*V) *int) settingBinding[V] {
	s.Allowed = fmt.Sprintf("a whole number from %d to %d", least, most)
	return bindSetting(s, KindWhole, field, within(least, most, strconv.Atoi))
}

const auto = "auto"

// orAuto makes the word auto another value of a knob that counts something, which is Auto then.
func orAuto[V any](b settingBinding[V], field func(*V) *int) settingBinding[V] {
	set := b.set
	b.Allowed += ", or " + auto
	b.set = func(v *V, in string) bool {
		if in == auto {
			*field(v) = Auto
			return true
		}
		return set(v, in)
	}
	return b
}

// orSwitch makes true and false other values of a knob, for all or nothing of what it says more closely.
func orSwitch[V any](b settingBinding[V], turn func(v *V, on bool)) settingBinding[V] {
	b.Kind = KindSwitch
	b.Allowed = "true, false or " + b.Allowed
	set := b.set
	b.set = func(v *V, in string) bool {
		if in == "true" || in == "false" {
			turn(v, in == "true")
			return true
		}
		return set(v, in)
	}
	return b
}

// wholeOf is a knob that takes a few numbers only.
func wholeOf[V any](s Setting, numbers []int, field func(*V) *int) settingBinding[V] {
	s.Allowed = orList(numbers)
	return bindSetting(s, KindWhole, field, func(in string) (int, bool) {
		n, err := strconv.Atoi(in)
		return n, err == nil && slices.Contains(numbers, n)
	})
}

// moneySetting is a knob in USD, more than nothing.
func moneySetting[V any](s Setting, field func(*V) *float64) settingBinding[V] {
	s.Allowed = "a number more than 0"
	return bindSetting(s, KindNumber, field, within(math.SmallestNonzeroFloat64, 1e9, parseNumber))
}

// listSetting is a knob with several texts, separated by commas.
func listSetting[V any](s Setting, field func(*V) *[]string, ok func(string) bool) settingBinding[V] {
	return bindSetting(s, KindList, field, func(in string) (out []string, _ bool) {
		for part := range strings.SplitSeq(in, ",") {
			part = strings.TrimSpace(part)
			if !ok(part) || slices.Contains(out, part) {
				return nil, false
			}
			out = append(out, part)
		}
		return out, true
	})
}

// pairsSetting is a knob with several keys and their values, separated by commas.
func pairsSetting[V any](s Setting, field func(*V) *[]Pair, ok func(Pair) bool) settingBinding[V] {
	return bindSetting(s, KindPairs, field, func(in string) (out []Pair, _ bool) {
		for part := range strings.SplitSeq(in, ",") {
			key, value, found := strings.Cut(part, "=")
			p := Pair{strings.TrimSpace(key), strings.TrimSpace(value)}
			if !found || !ok(p) || slices.ContainsFunc(out, func(o Pair) bool { return o.Key == p.Key }) {
				return nil, false
			}
			out = append(out, p)
		}
		return out, true
	})
}

// fractionSetting is a knob that is a part of a whole, from 0 up to but not including 1.
func fractionSetting[V any](s Setting, field func(*V) *float64) settingBinding[V] {
	s.Unit = "fraction"
	s.Allowed = "a number from 0 to 0.99, where 0.075 means 7.5 %"
	return bindSetting(s, KindNumber, field, within(0, 0.99, parseNumber))
}

// numberSetting is a knob counted in parts of a unit.
func numberSetting[V any](s Setting, least, most float64, field func(*V) *float64) settingBinding[V] {
	s.Allowed = fmt.Sprintf("a number from %v to %v", least, most)
	return bindSetting(s, KindNumber, field, within(least, most, parseNumber))
}

func isRolePath(s string) bool { return len(s) <= 512 && matches(`^/([A-Za-z0-9_+=,.@-]+/)*$`)(s) }

// isID accepts the ids of one kind of EC2 resource.
func isID(kind string) func(string) bool {
	return regexp.MustCompile(`^` + kind + `-[0-9a-f]{8,17}$`).MatchString
}

func isTag(p Pair) bool {
	return matches(`^[\p{L}\p{N} _.:/+@-]{1,128}$`)(p.Key) &&
		!strings.HasPrefix(p.Key, "aws:") &&
		matches(`^[\p{L}\p{N} _.:/+@-]{0,256}$`)(p.Value)
}

func isCABundle(s string) bool {
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return false
	}
	block, _ := pem.Decode(raw)
	return block != nil && block.Type == "CERTIFICATE"
}

// isZonedCron tells five fields, with or without a time zone before them.
func isZonedCron(s string) bool {
	zone, fields := splitTimeZone(s)
	return matches(`^[A-Za-z][A-Za-z0-9_+/-]*$`)(zone) && matches(`^[0-9A-Za-z*/,?-]+( [0-9A-Za-z*/,?-]+){4}$`)(fields)
}

// splitTimeZone returns the IANA name that CRON_TZ= gives before the five fields, UTC without it, and the fields.
func splitTimeZone(schedule string) (zone, fields string) {
	if rest, found := strings.CutPrefix(schedule, "CRON_TZ="); found {
		zone, fields, _ = strings.Cut(rest, " ")
		return zone, fields
	}
	return "UTC", schedule
}

func anyText(string) bool { return true }

// orList is "a, b or c".
func orList[T any](all []T) string {
	words := lists.Of(all, func(w T) string { return fmt.Sprint(w) })
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// shortDuration writes a duration without the empty parts that String adds: 1h, not 1h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
