package mls

import (
	"errors"
	"testing"
)

func TestWelcomeNamesKeyPackages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		packages int
		want     error
	}{
		{"nobody", 0, nil},
		{"a whole group", MaxMembers, nil},
		{"one more", MaxMembers + 1, ErrTooMany},
	} {
		message := welcome(c.packages)
		w, err := ParseWelcome(message)
		if !errors.Is(err, c.want) || err == nil && (len(w.KeyPackages) != c.packages || w.Suite != 1) {
			t.Errorf("%s: %+v, %v; want %v", c.name, w, err, c.want)
		}
		if h, err := ReadHeader(message); err != nil || h.WireFormat != FormatWelcome {
			t.Errorf("%s: header %+v, %v: a Welcome of any size can be carried", c.name, h, err)
		}
	}
}
