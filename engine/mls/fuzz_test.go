package mls

import (
	"bytes"
	"testing"
)

// addExamples adds a whole message and half a message of every kind. If the official vectors are
// present, it also adds their messages.
func addExamples(f *testing.F) {
	f.Helper()
	for _, whole := range examples(f) {
		f.Add(whole)
		f.Add(whole[:len(whole)/2])
	}
	if !hasVectors(f) {
		return
	}
	for _, v := range readVectors[messageVector](f, "messages")[:3] {
		for _, whole := range v.messages() {
			f.Add(whole)
		}
	}
}

// No message makes a parser panic or allocate more than mostAllocated. A parser accepts a message
// only if ReadHeader returns that parser's format.
func FuzzMessage(f *testing.F) {
	addExamples(f)
	f.Fuzz(func(t *testing.T, message []byte) {
		if got := measureAllocated(func() { parseEverything(message) }); got > mostAllocated(message) {
			t.Errorf("%d bytes allocated for %d", got, len(message))
		}
		h, err := ReadHeader(message)
		for _, format := range []WireFormat{FormatPublicMessage, FormatWelcome, FormatGroupInfo} {
			named := h
			named.WireFormat = format
			if parseErr := parseMessage(named, message); parseErr == nil && (err != nil || h.WireFormat != format) {
				t.Errorf("format %d is parsed, the header is %+v, %v", format, h, err)
			}
		}
		if m, err := ParsePublicMessage(message); err == nil {
			_ = m.Verify(&GroupInfo{Suite: 1, GroupID: m.GroupID, Epoch: m.Epoch, Members: []Member{{Index: m.Sender.Leaf}}})
		}
		if g, err := ParseGroupInfo(message); err == nil {
			_ = g.Verify()
		}
	})
}

// No key package makes a check panic. A key package reads the same with and without an MLSMessage
// around it.
func FuzzKeyPackage(f *testing.F) {
	addExamples(f)
	for suite := CipherSuite(1); suite <= 3; suite++ {
		d := newDevice(f, suite, 1)
		f.Add(d.keyPackage(f, d.draft()))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := ParseKeyPackage(b)
		if err != nil {
			return
		}
		if !bytes.HasSuffix(b, k.Raw) || len(b)-len(k.Raw) != 0 && len(b)-len(k.Raw) != 4 {
			t.Fatalf("of %x the package is %x", b, k.Raw)
		}
		_ = k.Check(string(k.Leaf.Identity), now, days84)
		w, err := ParseKeyPackage(message(FormatKeyPackage, k.Raw))
		if err != nil || !bytes.Equal(w.Raw, k.Raw) || w.Suite != k.Suite || !bytes.Equal(w.initKey, k.initKey) {
			t.Fatalf("wrapped: %+v, %v; want %+v", w, err, k)
		}
	})
}
