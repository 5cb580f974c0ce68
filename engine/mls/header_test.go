package mls

import (
	"errors"
	"slices"
	"testing"
)

func TestReadHeader(t *testing.T) {
	t.Parallel()
	all := examples(t)
	placed := func(f WireFormat, c ContentType) Header {
		return Header{WireFormat: f, GroupID: groupID, Epoch: 7, ContentType: c}
	}
	for kind, want := range map[string]Header{
		"private":         placed(FormatPrivateMessage, ContentApplication),
		"application":     placed(FormatPublicMessage, ContentApplication),
		"proposal":        placed(FormatPublicMessage, ContentProposal),
		"commit":          placed(FormatPublicMessage, ContentCommit),
		"external commit": placed(FormatPublicMessage, ContentCommit),
		"group info":      placed(FormatGroupInfo, 0),
		"welcome":         {WireFormat: FormatWelcome},
		"key package":     {WireFormat: FormatKeyPackage},
	} {
		if got, err := ReadHeader(all[kind]); err != nil || !sameHeader(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", kind, got, err, want)
		}
	}
}

func TestReadHeaderRefuses(t *testing.T) {
	t.Parallel()
	private := privateMessage(ContentApplication)
	for _, c := range []struct {
		name    string
		message []byte
		want    error
	}{
		{"nothing", nil, ErrTruncated},
		{"words", []byte("I am not a message of MLS"), ErrVersion},
		{"version 2", join([]byte{0, 2}, private[2:]), ErrVersion},
		{"wire format 0", message(0, private[4:]), ErrWireFormat},
		{"wire format 6", message(6, private[4:]), ErrWireFormat},
		{"content type 0", privateMessage(0), ErrContentType},
		{"content type 4", privateMessage(4), ErrContentType},
		{"a byte too many", append(slices.Clone(private), 0), ErrTrailing},
		{"a byte too few", private[:len(private)-1], ErrTruncated},
		{"a welcome and a byte", append(welcome(1), 0), ErrTrailing},
		{"an unknown sender", message(FormatPublicMessage, vector(groupID), uint64(7), uint8(9)), ErrSender},
		{"a group info of version 2", message(FormatGroupInfo, uint16(2), uint16(1), vector(groupID), uint64(7)), ErrVersion},
	} {
		if h, err := ReadHeader(c.message); !errors.Is(err, c.want) || h.GroupID != nil {
			t.Errorf("%s: %+v, %v; want %v", c.name, h, err, c.want)
		}
	}
}

func TestReadHeaderAllocatesNothing(t *testing.T) {
	for kind, message := range examples(t) {
		for _, m := range [][]byte{message, message[:len(message)/2], message[:5]} {
			if n := testing.AllocsPerRun(100, func() { _, _ = ReadHeader(m) }); n != 0 {
				t.Errorf("%s, %d of %d bytes: %v allocations", kind, len(m), len(message), n)
			}
		}
	}
}

func BenchmarkReadHeader(b *testing.B) {
	all := examples(b)
	for _, kind := range []string{"private", "commit", "welcome", "group info"} {
		b.Run(kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ReadHeader(all[kind]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
