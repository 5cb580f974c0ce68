package cmd

import (
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/instance"
)

// The types of values. Set parses the text that a person wrote. String returns a text that Set can
// parse again, except that it hides the value of a secret.
type (
	text     string
	path     string
	secret   instance.Secret
	whole    int
	truth    bool
	span     time.Duration
	size     int64
	rate     instance.Rate
	prefixes []netip.Prefix
	words    []string
	level    slog.Level
	format   string
)

func (v *text) Set(s string) error { *v = text(s); return nil }
func (v *text) String() string     { return string(*v) }
func (v *text) Type() string       { return "TEXT" }

// Set makes the path s absolute. A relative path begins at the working directory.
func (v *path) Set(s string) error {
	if s == "" {
		*v = ""
		return nil
	}
	abs, err := filepath.Abs(s)
	*v = path(abs)
	return err
}
func (v *path) String() string { return string(*v) }
func (v *path) Type() string   { return "PATH" }

func (v *secret) Set(s string) error { *v = secret(s); return nil }
func (v *secret) String() string     { return instance.Secret(*v).String() }
func (v *secret) Type() string       { return "SECRET" }

func (v *whole) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("%.60q is not a number", s)
	}
	*v = whole(n)
	return nil
}
func (v *whole) String() string { return strconv.Itoa(int(*v)) }
func (v *whole) Type() string   { return "NUMBER" }

func (v *truth) Set(s string) error {
	if s != "true" && s != "false" {
		return fmt.Errorf("%.60q is neither true nor false", s)
	}
	*v = s == "true"
	return nil
}
func (v *truth) String() string { return strconv.FormatBool(bool(*v)) }
func (v *truth) Type() string   { return "BOOL" }

const day = 24 * time.Hour

// Set accepts the durations of time.ParseDuration, and whole days such as 7d.
func (v *span) Set(s string) error {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		if days, err := strconv.ParseUint(n, 10, 16); err == nil {
			*v = span(time.Duration(days) * day)
			return nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return fmt.Errorf("%.60q is not a duration such as 30s, 12h or 7d", s)
	}
	*v = span(d)
	return nil
}

func (v *span) String() string {
	s := time.Duration(*v).String()
	if cut, ok := strings.CutSuffix(s, "m0s"); ok {
		s = cut + "m"
	}
	if cut, ok := strings.CutSuffix(s, "h0m"); ok {
		s = cut + "h"
	}
	return s
}
func (v *span) Type() string { return "DURATION" }

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

func (v *size) Set(s string) error {
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(s, u.name)
		n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 63)
		if ok && err == nil && int64(n) <= math.MaxInt64/u.bytes {
			*v = size(int64(n) * u.bytes)
			return nil
		}
	}
	return fmt.Errorf("%.60q is not a size such as 1048576 or 1MiB", s)
}

func (v *size) String() string {
	for _, u := range sizeUnits {
		if n := int64(*v); n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return "0"
}
func (v *size) Type() string { return "SIZE" }

func (v *rate) Set(s string) error {
	r, err := instance.ParseRate(s)
	*v = rate(r)
	return err
}
func (v *rate) String() string { return instance.Rate(*v).String() }
func (v *rate) Type() string   { return "RATE" }

// Set accepts networks and single addresses, separated by commas.
func (v *prefixes) Set(s string) error {
	list := []netip.Prefix{}
	for item := range strings.SplitSeq(s, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		p, err := netip.ParsePrefix(item)
		if a, e := netip.ParseAddr(item); e == nil && a.Zone() == "" {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return fmt.Errorf("%.60q is not a network such as 10.0.0.0/8", item)
		}
		if p != p.Masked() {
			return fmt.Errorf("%q has bits beyond its length: write %s", item, p.Masked())
		}
		list = append(list, p)
	}
	*v = list
	return nil
}

func (v *prefixes) String() string {
	words := make([]string, len(*v))
	for i, p := range *v {
		words[i] = p.String()
	}
	return strings.Join(words, ",")
}
func (v *prefixes) Type() string { return "NETWORKS" }

// Set accepts words, separated by commas or spaces.
func (v *words) Set(s string) error {
	*v = strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
	return nil
}
func (v *words) String() string { return strings.Join(*v, ",") }
func (v *words) Type() string   { return "LIST" }

var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

func (v *level) Set(s string) error {
	l, ok := levels[s]
	if !ok {
		return fmt.Errorf("%.60q is not debug, info, warn or error", s)
	}
	*v = level(l)
	return nil
}
func (v *level) String() string { return strings.ToLower(slog.Level(*v).String()) }
func (v *level) Type() string   { return "LEVEL" }

func (v *format) Set(s string) error {
	if s != "auto" && s != "text" && s != "json" {
		return fmt.Errorf("%.60q is not auto, text or json", s)
	}
	*v = format(s)
	return nil
}
func (v *format) String() string { return string(*v) }
func (v *format) Type() string   { return "FORMAT" }
