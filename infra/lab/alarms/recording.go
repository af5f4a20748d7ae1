package alarms

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// minute is a minute in seconds.
const minute = 60

// Recording is what a run of the product would have told CloudWatch, and the faults that it met one after the other.
// Its numbers are one for each series and minute, which is enough for alarms whose periods are whole minutes.
type Recording struct {
	Minutes int // from the first on
	Faults  []Fault
	Numbers Numbers
}

// Fault is something that went wrong in a run.
type Fault struct {
	From, Until int // minutes: from the beginning of one until the beginning of the other
	Name        string
	Alarms      []string // those that are for it
}

// PutMinute puts the number of a minute into a series, in the place that its minute has in periods.
func (r *Recording) PutMinute(series string, at int, value float64) {
	r.Numbers.Put(series, at*minute+minute/2, value)
}

// WriteRecording writes a recording as text. A series is one line of minutes and values; FROM-UNTIL:VALUE are minutes
// in a row with the same value, both included.
func WriteRecording(w io.Writer, r Recording) error {
	var b strings.Builder
	fmt.Fprintf(&b, "minutes %d\n", r.Minutes)
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "fault %d %d %s = %s\n", f.From, f.Until, strings.Join(f.Alarms, ","), f.Name)
	}
	for _, series := range slices.Sorted(maps.Keys(r.Numbers)) {
		fmt.Fprintf(&b, "series %s =%s\n", series, numbersText(r.Numbers[series]))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	return nil
}

// numbersText is a series as text, minutes in a row with the same value together.
func numbersText(numbers []Number) string {
	var b strings.Builder
	numbers = slices.SortedFunc(slices.Values(numbers), func(a, b Number) int { return cmp.Compare(a.At, b.At) })
	for i := 0; i < len(numbers); {
		first, last := numbers[i], numbers[i]
		for i++; i < len(numbers) && numbers[i].Value == first.Value && numbers[i].At-last.At == minute; i++ {
			last = numbers[i]
		}
		fmt.Fprintf(&b, " %d", first.At/minute)
		if last != first {
			fmt.Fprintf(&b, "-%d", last.At/minute)
		}
		fmt.Fprintf(&b, ":%g", first.Value)
	}
	return b.String()
}

// ReadRecording reads what WriteRecording wrote. An error names the line.
func ReadRecording(from io.Reader) (Recording, error) {
	r := Recording{Numbers: Numbers{}}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if err := r.readLine(lines.Text()); err != nil {
			return r, fmt.Errorf("read recording, line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return r, fmt.Errorf("read recording: %w", err)
	}
	return r, nil
}

func (r *Recording) readLine(line string) (err error) {
	kind, rest, _ := strings.Cut(line, " ")
	head, tail, _ := strings.Cut(rest, " =")
	switch kind {
	case "minutes":
		if r.Minutes, err = strconv.Atoi(rest); err != nil {
			return fmt.Errorf("minutes: %w", err)
		}
	case "fault":
		f, names := Fault{Name: strings.TrimSpace(tail)}, ""
		if _, err := fmt.Sscan(head, &f.From, &f.Until, &names); err != nil {
			return fmt.Errorf("fault %q: want FROM UNTIL ALARMS = NAME: %w", rest, err)
		}
		f.Alarms = strings.Split(names, ",")
		r.Faults = append(r.Faults, f)
	case "series":
		i := strings.LastIndex(rest, " =") // dimensions have signs of their own
		if i < 0 {
			return fmt.Errorf("series %q has no numbers", rest)
		}
		return r.readSeries(rest[:i], rest[i+len(" ="):])
	default:
		return fmt.Errorf("%q is neither minutes, fault nor series", kind)
	}
	return nil
}

func (r *Recording) readSeries(series, numbers string) error {
	for _, one := range strings.Fields(numbers) {
		when, what, _ := strings.Cut(one, ":")
		first, last, isRange := strings.Cut(when, "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			return fmt.Errorf("series %s: minute of %q: %w", series, one, err)
		}
		until := from
		if isRange {
			if until, err = strconv.Atoi(last); err != nil {
				return fmt.Errorf("series %s: minute of %q: %w", series, one, err)
			}
		}
		value, err := strconv.ParseFloat(what, 64)
		if err != nil {
			return fmt.Errorf("series %s: value of %q: %w", series, one, err)
		}
		for at := from; at <= until; at++ {
			r.PutMinute(series, at, value)
		}
	}
	return nil
}
