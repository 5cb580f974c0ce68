package inbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
)

const (
	boostOf = `{"id":"p:/acts/%[1]d","type":"Announce","actor":"p:/carol","to":"as:Public","object":"p:/notes/%[1]d"}`
	parsed  = 16 // bytes of memory that count for each byte of a document
)

// serveLarge shows a public note of carol's with a text of n bytes.
func serveLarge(s *peertest.Scene, id string, n int) {
	s.Serve(id, fmt.Sprintf(`{"id":%q,"type":"Note","attributedTo":"p:/carol","to":"as:Public","content":%q}`, id, strings.Repeat("x", n)))
}

// Mallory sends small boosts of large objects while alice's writer is held up. Each fetched object
// counts like a body until the writer has committed it.
func TestFetchedObjectsCountAgainstTheMemory(t *testing.T) {
	s := newScene(t)
	s.Follows("p:/carol")
	const size = 100_000
	serveLarge(s, "p:/notes/1", size)
	release := hold(t, s)
	answers := queue(t, s, fmt.Sprintf(boostOf, 1))
	if n := s.Inbox.Reserved(); n < parsed*size {
		t.Errorf("%d bytes are reserved for the request, want %d at least", n, parsed*size)
	}
	if n := s.Inbox.Held(); n < size {
		t.Errorf("the writers hold %d bytes, want %d at least", n, size)
	}
	release()
	if err := <-answers[0]; err != nil {
		t.Error(err)
	}
	if reserved, held := s.Inbox.Reserved(), s.Inbox.Held(); reserved != 0 || held != 0 {
		t.Errorf("%d bytes are reserved and %d held at the end, want none", reserved, held)
	}
}

// A request for whose documents there is no memory ends with 503, and nothing stays reserved.
func TestADocumentForWhichThereIsNoMemoryEndsTheRequest(t *testing.T) {
	s := newScene(t)
	s.Follows("p:/carol")
	serveLarge(s, "p:/notes/1", 100_000)
	release := s.Inbox.FillMemory(parsed * 100_000)
	err := s.Send("p:/carol", mine, fmt.Sprintf(boostOf, 1))
	release()
	if fault.KindOf(err) != fault.Unavailable || fault.Code(err) != "overloaded" {
		t.Errorf("err = %v with the code %q, want overloaded", err, fault.Code(err))
	}
	if n := s.Inbox.Reserved(); n != 0 {
		t.Errorf("%d bytes are reserved at the end, want none", n)
	}
}
