package thread

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// showPieces returns the pieces that the user may see and has not muted, in their order, with the
// cards of their authors.
func (r *Reader) showPieces(ctx context.Context, q Query, pieces []*piece) (shown []Object, actors map[vocab.ID]vocab.Card, err error) {
	err = r.Store.Read(ctx, q.User, func(ctx context.Context, tx *user.Tx) error {
		mutes, me := r.Profiles.User(q.User).Moderation, r.Local.ID(q.User)
		kept, err := r.keepVisible(ctx, tx, pieces, func(p *piece) (bool, error) {
			if p.isMuted(mutes, me) {
				return false, nil
			}
			return p.isFor(ctx, tx, me)
		})
		if err != nil {
			return err
		}
		var ids, authors []vocab.ID
		for _, p := range kept {
			ids = append(ids, p.ID)
			if p.author != "" {
				authors = append(authors, p.author)
			}
		}
		responses, err := tx.Threads.CountResponses(ctx, r.Local.ID(q.User), ids)
		if err != nil {
			return err
		}
		if actors, err = tx.Actors.FindCards(ctx, authors); err != nil {
			return err
		}
		r.addCards(actors, kept)
		languages := r.Profiles.User(q.User).Languages
		for _, p := range kept {
			shown = append(shown, p.show(responses[p.ID], actors[p.author].Followers, languages))
		}
		return nil
	})
	return shown, actors, err
}

// addCards sets the cards of local users to the current ones. If an author of another server has
// no card yet, addCards takes the card from the actor that was fetched.
func (r *Reader) addCards(cards map[vocab.ID]vocab.Card, pieces []*piece) {
	for _, p := range pieces {
		if p.author == "" {
			continue
		}
		card := cards[p.author]
		if u, isLocal := r.Local.Owner(p.author); isLocal {
			card = vocab.Card{}
			if doc, err := r.Local.Document(u); err == nil { // the card of an account that is gone stays empty
				card = vocab.CardOf(p.author, doc)
			}
		} else if card == (vocab.Card{}) && p.by != nil {
			if doc, err := vocab.ParseDoc(p.by.Raw); err == nil { // no failure: Raw was parsed before
				card = vocab.CardOf(p.author, doc)
			}
		}
		cards[p.author] = card
	}
}

// show returns the piece as readers of these languages see it. The parameter followers is the
// author's followers collection.
func (p *piece) show(are user.Responses, followers vocab.ID, languages []string) Object {
	return Object{URI: p.ID, AuthorURI: p.author, Visibility: audience.Of(p.to, p.author, followers).Visibility(), InReplyTo: p.InReplyTo, Held: p.isHeld, Archived: p.isCopied,
		Replies: are.Replies, Likes: are.Likes, Dislikes: are.Dislikes, Boosts: are.Boosts, Liked: are.Liked, Disliked: are.Disliked, Boosted: are.Boosted,
		Object: vocab.Show(p.Doc, p.readable, languages).JSON()}
}

// keepVisible returns the pieces that may be shown to a reader. These are posts for which isFor
// returns true, unless the user blocks or the gate refuses one of their authors or senders.
func (r *Reader) keepVisible(ctx context.Context, tx *user.Tx, pieces []*piece, isFor func(*piece) (bool, error)) (kept []*piece, err error) {
	var voices []vocab.ID
	for _, p := range pieces {
		voices = append(voices, p.voices...)
	}
	blocked, err := tx.Blocks.FindAmong(ctx, voices)
	if err != nil {
		return nil, err
	}
	for _, p := range pieces {
		isRefused := func(id vocab.ID) bool { return blocked[id] || r.Gate.CheckActor(id) != nil }
		if !p.isPost() || slices.ContainsFunc(p.voices, isRefused) {
			continue
		}
		is, err := isFor(p)
		if err != nil {
			return nil, err
		}
		if is {
			kept = append(kept, p)
		}
	}
	return kept, nil
}

// isFor reports whether the piece is for the user. A fetched piece that addresses nobody is for
// everybody who gets it from its server.
func (p *piece) isFor(ctx context.Context, tx *user.Tx, me vocab.ID) (bool, error) {
	if p.isHeld || len(p.to.All()) == 0 {
		return true, nil
	}
	viewer := audience.Viewer{ID: me}
	if p.by != nil && !audience.IsPublic(p.to) {
		follows, err := tx.Relationships.IsAccepted(ctx, user.Following, p.by.ID)
		if err != nil {
			return false, err
		}
		if follows && p.by.Followers != "" {
			viewer.Circles = []vocab.ID{p.by.Followers}
		}
	}
	return audience.Of(p.to, p.author, "").MaySee(viewer), nil
}
