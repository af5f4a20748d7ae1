package settings

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// durationRange is an inclusive range of time.
type durationRange struct{ least, most time.Duration }

// wholeRange is an inclusive range of whole numbers.
type wholeRange struct{ least, most int }

// numberRange is an inclusive range of numbers.
type numberRange struct{ least, most float64 }

// textSetting is a knob whose value is taken as it is written, if ok accepts it.
func textSetting[V any](s Setting, field func(*V) *string, ok func(string) bool) settingBinding[V] {
	s.Kind = KindText
	return settingBinding[V]{s, func(v *V, in string) error {
		if !ok(in) {
			return errNotAllowed()
		}
		*field(v) = in
		return nil
	}}
}

// choiceSetting is a knob with a few words to choose from, compared exactly.
func choiceSetting[V any](s Setting, words []string, set func(*V, string)) settingBinding[V] {
	s.Kind = KindChoice
	s.Allowed = orList(words)
	return settingBinding[V]{s, func(v *V, in string) error {
		if !slices.Contains(words, in) {
			return errNotAllowed()
		}
		set(v, in)
		return nil
	}}
}

// boolSetting is a knob that is on or off.
func boolSetting[V any](s Setting, field func(*V) *bool) settingBinding[V] {
	s.Unit = "true or false"
	return choiceSetting(s, []string{"true", "false"}, func(v *V, in string) { *field(v) = in == "true" })
}

// durationSetting is a knob counted in time, written as Go writes it (90s, 3m, 1h30m).
func durationSetting[V any](s Setting, allowed durationRange, field func(*V) *time.Duration) settingBinding[V] {
	s.Kind = KindText
	s.Unit = "duration"
	s.Allowed = fmt.Sprintf("a duration such as 90s, 3m or 1h30m, from %s to %s", shortDuration(allowed.least),
		shortDuration(allowed.most))
	return settingBinding[V]{s, func(v *V, in string) error {
		d, err := time.ParseDuration(in)
		if err != nil || d < allowed.least || d > allowed.most {
			return errNotAllowed()
		}
		*field(v) = d
		return nil
	}}
}

// wholeSetting is a knob that counts something.
func wholeSetting[V any](s Setting, allowed wholeRange, field func(*V) *int) settingBinding[V] {
	s.Kind = KindWhole
	s.Allowed = fmt.Sprintf("a whole number from %d to %d", allowed.least, allowed.most)
	return settingBinding[V]{s, func(v *V, in string) error {
		n, err := strconv.Atoi(in)
		if err != nil || n < allowed.least || n > allowed.most {
			return errNotAllowed()
		}
		*field(v) = n
		return nil
	}}
}

const auto = "auto"

// orAuto makes the word auto another value of a knob that counts something, which is Auto then.
func orAuto[V any](b settingBinding[V], field func(*V) *int) settingBinding[V] {
	set := b.set
	b.Allowed += ", or " + auto
	b.set = func(v *V, in string) error {
		if in == auto {
			*field(v) = Auto
			return nil
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
	b.set = func(v *V, in string) error {
		if in == "true" || in == "false" {
			turn(v, in == "true")
			return nil
		}
		return set(v, in)
	}
	return b
}

// wholeOf is a knob that takes a few numbers only.
func wholeOf[V any](s Setting, numbers []int, field func(*V) *int) settingBinding[V] {
	s.Kind = KindWhole
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	s.Allowed = orList(words)
	return settingBinding[V]{s, func(v *V, in string) error {
		n, err := strconv.Atoi(in)
		if err != nil || !slices.Contains(numbers, n) {
			return errNotAllowed()
		}
		*field(v) = n
		return nil
	}}
}

// moneySetting is a knob in USD, more than nothing.
func moneySetting[V any](s Setting, field func(*V) *float64) settingBinding[V] {
	s.Kind = KindNumber
	s.Allowed = "a number more than 0"
	return settingBinding[V]{s, func(v *V, in string) error {
		f, err := strconv.ParseFloat(in, 64)
		if err != nil || !(f > 0 && f <= 1e9) { // the negation refuses NaN too
			return errNotAllowed()
		}
		*field(v) = f
		return nil
	}}
}

// listSetting is a knob with several texts, separated by commas.
func listSetting[V any](s Setting, field func(*V) *[]string, ok func(string) bool) settingBinding[V] {
	s.Kind = KindList
	return settingBinding[V]{s, func(v *V, in string) error {
		var out []string
		for part := range strings.SplitSeq(in, ",") {
			part = strings.TrimSpace(part)
			if !ok(part) || slices.Contains(out, part) {
				return errNotAllowed()
			}
			out = append(out, part)
		}
		*field(v) = out
		return nil
	}}
}

// pairsSetting is a knob with several keys and their values, separated by commas.
func pairsSetting[V any](s Setting, field func(*V) *[]Pair, ok func(Pair) bool) settingBinding[V] {
	s.Kind = KindPairs
	return settingBinding[V]{s, func(v *V, in string) error {
		var out []Pair
		for part := range strings.SplitSeq(in, ",") {
			key, value, found := strings.Cut(part, "=")
			p := Pair{strings.TrimSpace(key), strings.TrimSpace(value)}
			if !found || !ok(p) || slices.ContainsFunc(out, func(o Pair) bool { return o.Key == p.Key }) {
				return errNotAllowed()
			}
			out = append(out, p)
		}
		*field(v) = out
		return nil
	}}
}

// statementsSetting is a knob with statements of an IAM policy, as JSON.
func statementsSetting[V any](s Setting, field func(*V) *[]Statement) settingBinding[V] {
	s.Kind = KindStatements
	return settingBinding[V]{s, func(v *V, in string) error {
		list, ok := parseStatements(in)
		if !ok {
			return errNotAllowed()
		}
		*field(v) = list
		return nil
	}}
}

// fractionSetting is a knob that is a part of a whole, from 0 up to but not including 1.
func fractionSetting[V any](s Setting, field func(*V) *float64) settingBinding[V] {
	s.Kind = KindNumber
	s.Unit = "fraction"
	s.Allowed = "a number from 0 to 0.99, where 0.075 means 7.5 %"
	return settingBinding[V]{s, func(v *V, in string) error {
		f, err := strconv.ParseFloat(in, 64)
		if err != nil || !(f >= 0 && f <= 0.99) { // the negation refuses NaN too
			return errNotAllowed()
		}
		*field(v) = f
		return nil
	}}
}

// numberSetting is a knob counted in parts of a unit.
func numberSetting[V any](s Setting, allowed numberRange, field func(*V) *float64) settingBinding[V] {
	s.Kind = KindNumber
	s.Allowed = fmt.Sprintf("a number from %v to %v", allowed.least, allowed.most)
	return settingBinding[V]{s, func(v *V, in string) error {
		f, err := strconv.ParseFloat(in, 64)
		if err != nil || !(f >= allowed.least && f <= allowed.most) { // the negation refuses NaN too
			return errNotAllowed()
		}
		*field(v) = f
		return nil
	}}
}

// isClusterName accepts what EKS does.
func isClusterName(s string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`).MatchString(s)
}

func isRoleName(s string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9_+=,.@-]{1,64}$`).MatchString(s)
}

// isRole accepts a role's name, with its path or without, and its ARN.
func isRole(s string) bool {
	return regexp.MustCompile(`^(arn:aws[a-z-]*:iam::[0-9]{12}:role/)?([A-Za-z0-9_+=,.@-]+/)*[A-Za-z0-9_+=,.@-]{1,64}$`).MatchString(s)
}

func isRolePath(s string) bool {
	return len(s) <= 512 && regexp.MustCompile(`^/([A-Za-z0-9_+=,.@-]+/)*$`).MatchString(s)
}

func isPolicyARN(s string) bool {
	return regexp.MustCompile(`^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[A-Za-z0-9_+=,.@/-]{1,512}$`).MatchString(s)
}

func isKeyARN(s string) bool {
	return regexp.MustCompile(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]{1,64}$`).MatchString(s)
}

func isAccount(s string) bool { return regexp.MustCompile(`^[0-9]{12}$`).MatchString(s) }

func isRegion(s string) bool {
	return regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-[0-9]$`).MatchString(s)
}

func isNamePrefix(s string) bool {
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,19}$`).MatchString(s)
}

func isPolicy(s string) bool {
	return regexp.MustCompile(`^(arn:aws[a-z-]*:iam::[0-9a-z]*:policy/)?[A-Za-z0-9_+=,.@/-]{1,128}$`).MatchString(s)
}

func isParameter(s string) bool {
	return regexp.MustCompile(`^/?[A-Za-z0-9_.*-]+(/[A-Za-z0-9_.*-]+)*$`).MatchString(s)
}

func isNamespace(s string) bool {
	return regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`).MatchString(s)
}

func isEmail(s string) bool {
	return regexp.MustCompile(`^[^@\s,]+@[^@\s,]+\.[^@\s,]+$`).MatchString(s)
}

// isID accepts the ids of one kind of EC2 resource.
func isID(kind string) func(string) bool {
	return regexp.MustCompile(`^` + kind + `-[0-9a-f]{8,17}$`).MatchString
}

func isTag(p Pair) bool {
	return regexp.MustCompile(`^[\p{L}\p{N} _.:/+@-]{1,128}$`).MatchString(p.Key) &&
		!strings.HasPrefix(p.Key, "aws:") &&
		regexp.MustCompile(`^[\p{L}\p{N} _.:/+@-]{0,256}$`).MatchString(p.Value)
}

func isHTTPS(s string) bool {
	return regexp.MustCompile(`^https://[^/\s]+/?$`).MatchString(s)
}

func isCIDR(s string) bool {
	return regexp.MustCompile(`^[0-9a-fA-F.:]+/[0-9]{1,3}$`).MatchString(s)
}

func isCABundle(s string) bool {
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return false
	}
	block, _ := pem.Decode(raw)
	return block != nil && block.Type == "CERTIFICATE"
}

// isCron tells five fields; whether they come to a time is found out where they are read.
func isCron(s string) bool {
	return regexp.MustCompile(`^[0-9A-Za-z*/,?-]+( [0-9A-Za-z*/,?-]+){4}$`).MatchString(s)
}

// isZonedCron tells five fields, with or without a time zone before them.
func isZonedCron(s string) bool {
	zone, fields := splitTimeZone(s)
	return isZone(zone) && isCron(fields)
}

// splitTimeZone returns the IANA name that CRON_TZ= gives before the five fields, UTC without it, and the fields.
func splitTimeZone(schedule string) (zone, fields string) {
	if rest, found := strings.CutPrefix(schedule, "CRON_TZ="); found {
		zone, fields, _ = strings.Cut(rest, " ")
		return zone, fields
	}
	return "UTC", schedule
}

func isZone(s string) bool {
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+/-]*$`).MatchString(s)
}

func isPushPath(s string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9]{32,64}$`).MatchString(s)
}

func anyText(string) bool { return true }

// orList is "a, b or c".
func orList(words []string) string {
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
