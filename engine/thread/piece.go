package thread

import (
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// piece is an object that may become part of the answer.
type piece struct {
	*vocab.Object
	readable vocab.Doc        // its words in the form that readers see
	author   vocab.ID         // proven; empty if no author is proven
	voices   []vocab.ID       // every actor who wrote or sent it
	to       vocab.Addressing // its addressing, or that of its Create if it has none
	isHeld   bool
	isCopied bool         // an archived post
	waits    bool         // it is among the requests, which are private messages of strangers
	isAsked  bool         // the user asked for this object itself, not only for a thread or a list that contains it
	by       *vocab.Actor // the author, if the object was fetched
}

// readHeld reads an object of the user's database.
func readHeld(h user.HeldObject) (*piece, error) {
	o, err := h.Parse()
	if err != nil {
		return nil, err
	}
	p := &piece{Object: o, isHeld: true, isCopied: h.Copied, waits: h.Waits, author: o.AttributedTo, voices: o.Authors(),
		readable: vocab.ReadableOf(o.Doc, h.Readable)}
	if !p.author.SameOrigin(o.ID) {
		p.author = h.Creator
	}
	if h.Creator != "" && !slices.Contains(p.voices, h.Creator) {
		p.voices = append(p.voices, h.Creator)
	}
	if p.to, err = h.AddressingOf(o); err != nil {
		return nil, err
	}
	return p, nil
}

// readFetched reads an object that was fetched, in the form in which the database would hold it.
func readFetched(o *vocab.Object, by *vocab.Actor) (*piece, error) {
	doc, readable := o.Stored()
	p, err := readHeld(user.HeldObject{Object: user.Object{URI: o.ID, Raw: doc, Readable: readable}})
	if err != nil {
		return nil, err
	}
	p.isHeld, p.by = false, by
	return p, nil
}

// isMuted reports whether the user has muted the piece. An object that the user asked for is not
// muted.
func (p *piece) isMuted(mutes registry.Moderation, me vocab.ID) bool {
	return !p.isAsked && (mutes.HidesAny(p.voices, me) || !p.author.Same(me) && mutes.HidesWords(p.Doc))
}

// isPost reports whether people can read the object: it is neither deleted nor a message of an
// encrypted conversation.
func (p *piece) isPost() bool { return p.Type != "Tombstone" && p.Doc.Sealed() == "" }
