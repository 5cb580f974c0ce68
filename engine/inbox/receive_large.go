package inbox

import (
	"cmp"
	"context"
	"net/http"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// errTooLarge is the answer to a large body that is not an MLS message, or whose sender may not
// send a large one.
var errTooLarge = fault.New(fault.TooLarge, "the body is too large")

const (
	// perLargeByte is the memory, in bytes, for each byte of a body beyond BodyLimit. It is
	// less than perByte because the number of values in a document is limited, so a larger
	// document has longer texts, not more values.
	perLargeByte = 6
	// mostAsked is the greatest number of users whose databases are read to find out whether
	// one of them knows the sender of a large body to the shared inbox.
	mostAsked = 200
	// atOnce limits how many large activities are applied at the same time. It is small
	// because each recipient's transaction has copies of the message in memory.
	atOnce = 4
)

// ReceiveLarge is Receive for a request whose Content-Length is above BodyLimit and whose body is
// not read yet. Such a request may carry an MLS message. ReceiveLarge calls the function read to
// get the body if two conditions are met. First, the headers must prove, by a remembered key, that
// the sender may write to a local user in private. Second, there must be memory for the whole
// body. The memory is reserved in the name of the sender's domain, which is passed to the function
// read as payer. If a condition is not met, nothing is read, and the fault is TooLarge,
// RateLimited for a sender of too many large bodies, or Unavailable when there is no memory now.
func (i *Inbox) ReceiveLarge(ctx context.Context, r *http.Request, user vocab.Username, read func(payer string) ([]byte, error)) error {
	x := &receiving{Inbound: pipeline.Inbound{Request: r, User: user}, came: i.Now(), large: r.ContentLength}
	return i.conclude(x, i.admitLarge(ctx, x, read))
}

func (i *Inbox) admitLarge(ctx context.Context, x *receiving, read func(payer string) ([]byte, error)) (err error) {
	if err := i.recognizeSender(ctx, x); err != nil {
		return err
	}
	if err := i.memory.takeRoom(x); err != nil {
		return err
	}
	defer i.memory.giveAll(x)
	if x.Body, err = read(x.payer); err != nil {
		return err
	}
	return i.receiving.Run(ctx, x)
}

// recognizeSender identifies the sender of a large body, and refuses one that may not send it.
func (i *Inbox) recognizeSender(ctx context.Context, x *receiving) error {
	sender, err := i.Verifier.Recognize(ctx, x.Request)
	switch {
	case fault.KindOf(err) == fault.Unauthenticated, fault.KindOf(err) == fault.Forbidden: // the peer must not learn which actors are known here
		return fault.Wrap(fault.TooLarge, fault.Public(errTooLarge), err)
	case err != nil:
		return err
	case i.Local.IsLocal(sender.ID):
		return errTooLarge
	}
	if err := limitBy(i.bounds.large, string(sender.ID)); err != nil {
		return err
	}
	x.recognized, x.payer = sender.ID, policy.RegistrableDomain(sender.ID.Host())
	known, err := i.isKnownSender(ctx, x)
	if err == nil && !known {
		err = errTooLarge
	}
	return err
}

// isKnownSender reports whether the sender may write in private to the user, or, for the shared
// inbox, to any user that the sender may concern. It looks only at the first mostAsked of these
// users. If it finds no such user, and the database of one of them could not be read, it returns
// the error of that database.
func (i *Inbox) isKnownSender(ctx context.Context, x *receiving) (known bool, err error) {
	var users []vocab.Username
	if x.User.IsZero() {
		users, err = i.Store.Instance.Acquaintances.Users(ctx, x.recognized, false)
	} else {
		users, err = i.Store.Instance.Users.Active(ctx, []vocab.Username{x.User})
	}
	if err != nil {
		return false, err
	}
	var unsure error
	for _, u := range users[:min(len(users), mostAsked)] {
		err := i.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
			known, err = mayWrite(ctx, tx, i.Profiles.User(u), x.recognized, true)
			return err
		})
		if err == nil && known {
			return true, nil
		}
		unsure = cmp.Or(err, unsure)
	}
	return false, unsure
}

// checkLarge refuses a large body that is not an MLS message of the recognized sender's own.
func (i *Inbox) checkLarge(x *receiving) error {
	if x.large > 0 && !(x.Activity.Actor.Same(x.recognized) && x.Activity.Object.Doc.Sealed() != "" && i.Handlers.IsApart(x.Activity)) {
		return errTooLarge
	}
	return nil
}

// checkLargeMessage refuses a large body whose object is not readable as an MLS message. An
// object that is not readable is stored only when it is small.
func checkLargeMessage(x *receiving) error {
	if x.large > 0 && !conversation.IsMessage(x.Activity.Object.Doc) {
		return errTooLarge
	}
	return nil
}
