package mls

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// mostAllocated returns how many bytes the parsing of a message may allocate: a fixed number, plus
// 32 bytes for each byte of the message.
func mostAllocated(message []byte) uint64 { return 64<<10 + 32*uint64(len(message)) }

// measureAllocated calls do() and returns how many bytes the call allocates.
func measureAllocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// parseEverything parses a message with every parser.
func parseEverything(message []byte) {
	_, _ = ReadHeader(message)
	_, _ = ParsePublicMessage(message)
	_, _ = ParseWelcome(message)
	_, _ = ParseGroupInfo(message)
	_, _ = ParseKeyPackage(message)
}

// Parsing a message of 4 MiB allocates at most 128 KiB, even if the message has millions of parts
// or claims to have them.
func TestHugeMessagesCostNoMemory(t *testing.T) {
	d := newDevice(t, 1, 1)
	const size = 4 << 20
	for name, message := range map[string][]byte{
		"a welcome of millions": message(FormatWelcome, uint16(1), vector(make([]byte, size)), vector()),
		"a commit of millions": d.publicMessage(t, memberAt(0), ContentCommit, commit(nil, slices.Repeat(
			join(uint8(byReference), vector()), size/2))),
		"a path of millions": d.publicMessage(t, memberAt(0), ContentCommit, join(vector(), uint8(1), d.commitLeaf(t), vector(make([]byte, size)))),
		"a node of millions": d.publicMessage(t, memberAt(0), ContentCommit, join(vector(), uint8(1), d.commitLeaf(t),
			vector(vector(), vector(make([]byte, size))))),
		"a tree of blanks":       d.groupInfo(t, 0, extension(extensionRatchetTree, vector(make([]byte, size)))),
		"millions of extensions": d.groupInfo(t, 0, slices.Repeat(extension(9, nil), size/3)),
		"a length of a gigabyte": message(FormatWelcome, uint16(1), []byte{0xbf, 0xff, 0xff, 0xff}, make([]byte, 392)),
	} {
		if got := measureAllocated(func() { parseEverything(message) }); got > 128<<10 {
			t.Errorf("%s: %d bytes allocated for %d", name, got, len(message))
		}
	}
}

// These accepted messages cost most memory: a full group of the smallest leaves, a commit with the
// most proposals, and a Welcome for the most key packages.
func TestFullGroupsCostAFewTimesTheirSize(t *testing.T) {
	d := newDevice(t, 1, 1)
	leaf := join(vector(), vector(), basic(""), vector(), vector(), vector(), vector(), vector())
	node := join(uint8(1), uint8(nodeLeaf), leaf, uint8(leafOfUpdate), vector(), vector())
	added := join(uint16(mls10), uint16(1), vector(), leaf, uint8(leafOfKeyPackage), uint64(0), uint64(0), vector(), vector(), vector(), vector())
	for name, message := range map[string][]byte{
		"a tree":    d.groupInfo(t, 0, extension(extensionRatchetTree, vector(slices.Repeat(join(node, uint8(0)), MaxMembers-1), node))),
		"a commit":  d.publicMessage(t, memberAt(0), ContentCommit, commit(nil, slices.Repeat(proposal(ProposalAdd, added), maxProposals))),
		"a welcome": message(FormatWelcome, uint16(1), vector(slices.Repeat([]byte{0, 0, 0}, MaxMembers)), vector()),
	} {
		h, err := ReadHeader(message)
		if err == nil {
			err = parseMessage(h, message)
		}
		if got := measureAllocated(func() { parseEverything(message) }); err != nil || got > mostAllocated(message) {
			t.Errorf("%s: %v, %d bytes allocated for %d", name, err, got, len(message))
		}
	}
}

// No parser reads past the end of a message, even if one of its lengths is forged.
func TestMessagesWithForgedLengths(t *testing.T) {
	t.Parallel()
	forged := [][]byte{{0xbf, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 0}, {0x7f, 0xff, 0x7f, 0xff}}
	for _, whole := range examples(t) {
		for at := range len(whole) - 4 {
			for _, f := range forged {
				parseEverything(slices.Concat(whole[:at], f, whole[at+4:]))
			}
		}
	}
}

// Messages that are cut off, or that continue with random bytes, make no parser panic. Every
// parser refuses a message that is cut off.
func TestBrokenMessagesDoNoHarm(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9420, 1))
	noise := make([]byte, 1<<10)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	all := examples(t)
	for _, whole := range all {
		h, err := ReadHeader(whole)
		if err != nil {
			t.Fatal(err)
		}
		broken := make([]byte, len(whole)+len(noise))
		for range 1_000_000 / len(all) {
			kept := copy(broken, whole[:random.IntN(len(whole))])
			end := kept + copy(broken[kept:], noise[random.IntN(len(noise)):])*random.IntN(2)
			if err := readWhole(h, broken[:end]); err == nil && end == kept {
				t.Fatalf("%x is taken", broken[:end])
			}
		}
	}
}
