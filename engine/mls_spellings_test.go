package engine_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// spellings are the ways in which a peer that knows the SWICG draft alone writes the object of a
// message. Its type is a name or a list of names. A context is a hint and may name anything.
func (g *guest) spellings() (all []vocab.Doc) {
	const full = "https://purl.archive.org/socialweb/mls#PrivateMessage"
	for _, kind := range []any{"PrivateMessage", "mls:PrivateMessage", full, []any{"PrivateMessage"}, []any{"Object", "PrivateMessage"}, []any{"Object", full}} {
		all = append(all, vocab.Doc{"type": kind})
	}
	for _, hint := range []any{nil, "uri:uuid:" + uuid.NewString(), "mls://m/01J9Z3", "urn:uuid:" + uuid.NewString()} {
		all = append(all, vocab.Doc{"type": []any{"PrivateMessage"}, "id": string(g.actor.ID) + "/objects/" + uuid.NewString(), "context": hint, "conversation": hint})
	}
	return all
}

// plaintexts are Notes with ids of the draft, of its text and of Emissary.
func plaintexts(n int) []string {
	var all []string
	for _, id := range []string{"uri:uuid:", "urn:uuid:", "mls://m/"} {
		all = append(all, fmt.Sprintf(`{"type":"Create","id":"%[1]sc-%[2]d","object":{"type":"Note","id":"%[1]sn-%[2]d","content":"so it is written"}}`, id, n))
	}
	return append(all, fmt.Sprintf(`{"type":["Note"],"id":"uri:uuid:%d","content":"a Note alone"}`, n))
}

// spell sends a message in each spelling, with a plaintext of each kind in turn, and returns the
// plaintexts.
func (g *guest) spell(t *testing.T) (said []string) {
	t.Helper()
	for n, form := range g.spellings() {
		all := plaintexts(n)
		text := all[n%len(all)]
		g.sendAs(t, g.encrypt(t, text), form)
		said = append(said, text)
	}
	return said
}

// samSpells lets sam spell messages in all ways. The others read the same from him. He reads
// what they write with such ids, and of theirs the type is one name.
func (r *mixedRoom) samSpells(t *testing.T) {
	next := r.host().conversation(t).LastSeq
	said := r.sam.spell(t)
	r.allCatchUp(t, next+int64(len(said)))
	for _, s := range r.seats {
		s.expectHeard(t, said...)
	}
	answers := plaintexts(100)
	for _, text := range answers {
		r.allHear(t, r.last().say(t, text).Seq)
	}
	r.sam.hears(t, "the answers", func() bool { return len(r.sam.heard) == len(answers) })
	r.sam.expectHeard(t, answers...)
	for _, s := range r.seats {
		s.heard = nil
	}
}
