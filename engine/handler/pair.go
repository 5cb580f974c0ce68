package handler

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/vocab"
)

// note is the type of the objects in unencrypted conversations.
const note = "Note"

// keepReceivedNote adds a private Note to the conversation with its author, if the Note is for the
// user alone. A Note that waits among the requests is added when the request is accepted.
func keepReceivedNote(ctx context.Context, tx *user.Tx, r *Received, o *vocab.Object) error {
	if r.Request || o.Type != note || !isBetween(r.Activity, o, r.Actor.ID, r.Me) {
		return nil
	}
	_, _, err := tx.Pairs.AddNote(ctx, user.PairNote{User: r.Me, Partner: r.Actor.ID, Object: o.ID, At: r.Now})
	return err
}

// isBetween reports whether a post is addressed to exactly one actor besides its author, namely
// the actor in the parameter other.
func isBetween(a *vocab.Activity, o *vocab.Object, author, other vocab.ID) bool {
	return audience.Counterpart(a.Addressing, author).Same(other) && (len(o.All()) == 0 || audience.Counterpart(o.Addressing, author).Same(other))
}

// keepSentNote handles an object that the user sends to one actor in private. If the object is a
// Note that names the actor, keepSentNote adds the Note to the conversation of the two. If that
// conversation is encrypted, keepSentNote refuses an object of any type, even if the conversation
// is closed.
func keepSentNote(ctx context.Context, tx *user.Tx, s *Sent, o *vocab.Object) error {
	reader := s.onlyReader()
	if reader == "" || o.Type != note || !audience.Names(s.Activity.Addressing, reader) {
		return checkSentWords(ctx, tx, s)
	}
	c, _, err := tx.Pairs.AddNote(ctx, user.PairNote{User: s.Actor.ID, Partner: reader, Object: o.ID, Own: true, At: s.Now})
	if err != nil {
		return err
	}
	return conversation.CheckOpen(c)
}

// checkSentWords refuses an unencrypted object, or a change of one, that only one actor would get,
// if the conversation of the user with that actor is encrypted.
func checkSentWords(ctx context.Context, tx *user.Tx, s *Sent) error {
	reader := s.onlyReader()
	if reader == "" {
		return nil
	}
	c, err := tx.Pairs.Find(ctx, reader)
	if err != nil || c == nil {
		return err
	}
	return conversation.CheckOpen(c)
}

// onlyReader returns the one actor who gets a private activity of the user. The result is empty if
// the activity is not private or several actors get it. If the activity names one actor besides
// the user, the result is that actor. If the activity names nobody but the user, the result is the
// only actor that the activity reaches through the user's groups.
func (s *Sent) onlyReader() (one vocab.ID) {
	if !audience.OfActivity(s.Activity, s.Actor.Followers).IsPrivate() {
		return ""
	}
	named := audience.Counterpart(s.Activity.Addressing, s.Actor.ID)
	isCollection := strings.HasPrefix(string(named), string(s.Actor.ID)+"/")
	isOther := func(id vocab.ID) bool { return !id.Same(s.Actor.ID) }
	switch {
	case isCollection:
		return ""
	case named != "":
		return named
	case slices.ContainsFunc(s.Activity.All(), isOther):
		return ""
	}
	for _, m := range s.Members {
		if one != "" && !m.Actor.Same(one) {
			return ""
		}
		one = m.Actor.Canonical()
	}
	return one
}

// acceptLetters accepts the private messages of a stranger. The stranger's Notes to the user
// begin a conversation, or are added to an existing one.
func acceptLetters(ctx context.Context, tx *user.Tx, s *Sent) error {
	about, err := tx.Requests.Accept(ctx, s.Request, s.Now)
	if err != nil {
		return err
	}
	var letters []vocab.ID
	for _, id := range about {
		is, err := isLetterTo(ctx, tx, id, s.Request, s.Actor.ID)
		if err != nil {
			return err
		}
		if is {
			letters = append(letters, id)
		}
	}
	if len(letters) == 0 {
		return nil
	}
	pair := user.PairNote{User: s.Actor.ID, Partner: s.Request, At: s.Now}
	_, began, err := tx.Pairs.AddNote(ctx, pair) // a new conversation begins with the stored Notes
	for _, id := range letters {
		if err != nil || began {
			return err
		}
		pair.Object = id
		_, _, err = tx.Pairs.AddNote(ctx, pair)
	}
	return err
}

// isLetterTo reports whether a stored object is a Note that is addressed to exactly one actor
// besides its author, namely the actor in the parameter "to".
func isLetterTo(ctx context.Context, tx *user.Tx, id, author, to vocab.ID) (bool, error) {
	o, err := tx.Objects.FindLiving(ctx, id)
	return o != nil && o.Type == note && audience.Counterpart(o.Addressing, author).Same(to), err
}

// closePair closes the encrypted conversation of the user with an actor if the user's rule
// encrypted_chat does not permit it any more. The conversation does not become an unencrypted
// one. The parameter own is true if the user, and not the actor, has ended the relationship.
func (r *Registry) closePair(ctx context.Context, tx *user.Tx, u vocab.Username, me, actor vocab.ID, own bool, now time.Time) error {
	ties, err := tx.Relationships.FindTies(ctx, []vocab.ID{actor})
	if err != nil || audience.Rule(r.profiles.User(u).Permissions.EncryptedChat).IsMet(ties[actor]) {
		return err
	}
	by := actor
	if own {
		by = me
	}
	_, err = tx.Pairs.Close(ctx, actor, by, now)
	return err
}
