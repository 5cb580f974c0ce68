package mls

import (
	"errors"
	"slices"
	"testing"
)

func TestVectorsAreReadInTheirShortestForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		message []byte
		length  int
		want    error
	}{
		{"nothing", []byte{}, 0, ErrTruncated},
		{"empty", []byte{0}, 0, nil},
		{"a byte", []byte{1, 9}, 1, nil},
		{"63 bytes", join(uint8(63), make([]byte, 63)), 63, nil},
		{"64 bytes", join([]byte{0x40, 64}, make([]byte, 64)), 64, nil},
		{"16384 bytes", join([]byte{0x80, 0, 0x40, 0}, make([]byte, 16384)), 16384, nil},
		{"63 bytes in two", join([]byte{0x40, 63}, make([]byte, 63)), 0, ErrLength},
		{"16383 bytes in four", join([]byte{0x80, 0, 0x3f, 0xff}, make([]byte, 16383)), 0, ErrLength},
		{"the reserved form", []byte{0xc0, 0, 0, 0, 0, 0, 0, 0}, 0, ErrLength},
		{"half a length of two bytes", []byte{0x40}, 0, ErrTruncated},
		{"half a length of four bytes", []byte{0x80, 1, 0}, 0, ErrTruncated},
		{"a byte too few", []byte{2, 9}, 0, ErrTruncated},
		{"the greatest length and nothing in it", []byte{0xbf, 0xff, 0xff, 0xff}, 0, ErrTruncated},
		{"a byte too many", []byte{1, 9, 9}, 1, ErrTrailing},
	} {
		r := reader{rest: c.message}
		if got, err := r.readVector(), r.finish(); len(got) != c.length || !errors.Is(err, c.want) {
			t.Errorf("%s: %d bytes, %v; want %d, %v", c.name, len(got), err, c.length, c.want)
		}
	}
}

func TestListEndsWhereItsLengthSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		message []byte
		want    error
	}{
		{"two values", vector([]byte{1, 7}, []byte{0}), nil},
		{"a value that goes on behind the list", join(vector([]byte{2, 7}), uint8(7)), ErrTruncated},
	} {
		r := reader{rest: c.message}
		r.readList(func(r *reader) { r.readVector() })
		if err := r.finish(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// A message that ends early is refused, in whichever field it ends. A message with a trailing byte
// is refused, too.
func TestMessagesThatEndEarlyOrLate(t *testing.T) {
	t.Parallel()
	for kind, whole := range examples(t) {
		refuseCuts(t, kind, whole)
	}
}

func TestOfficialMessagesThatEndEarlyOrLate(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors[messageVector](t, "messages")[:5] {
		for kind, whole := range v.messages() {
			refuseCuts(t, kind, whole)
		}
	}
}

func refuseCuts(t *testing.T, kind string, whole []byte) {
	t.Helper()
	h, err := ReadHeader(whole)
	if err == nil {
		err = readWhole(h, whole)
	}
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	for end := range whole {
		if err := readWhole(h, whole[:end]); !errors.Is(err, ErrTruncated) {
			t.Errorf("%s, %d of %d bytes: %v, want %v", kind, end, len(whole), err, ErrTruncated)
		}
	}
	if err := readWhole(h, append(slices.Clone(whole), 0)); !errors.Is(err, ErrTrailing) {
		t.Errorf("%s and a byte: %v, want %v", kind, err, ErrTrailing)
	}
}

// readWhole reads a message with the parser for h's format. It returns an error unless the message
// ends where the parser ends.
func readWhole(h Header, message []byte) error {
	if h.WireFormat == FormatPrivateMessage {
		_, err := ReadHeader(message)
		return err
	}
	return parseMessage(h, message)
}

func TestVectorsAreWrittenInTheirShortestForm(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1<<6 - 1, 1 << 6, 1<<14 - 1, 1 << 14, 1 << 20} {
		r := reader{rest: vector(make([]byte, n))}
		if got, err := r.readVector(), r.finish(); len(got) != n || err != nil {
			t.Errorf("%d bytes: read as %d, %v", n, len(got), err)
		}
	}
}
