package thread

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// showPieces returns those of the pieces that the user may be shown, in their order, and the cards
// of their authors.
func (r *Reader) showPieces(ctx context.Context, q Query, pieces []*piece) (shown []Object, actors map[vocab.ID]vocab.Card, err error) {
	err = r.Store.Read(ctx, q.User, func(ctx context.Context, tx *db.Tx) error {
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
		responses, err := tx.CountResponses(ctx, r.Local.ID(q.User), ids)
		if err != nil {
			return err
		}
		if actors, err = tx.Cards(ctx, authors); err != nil {
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

// addCards shows users of this server as they are now, and authors that the user has no copy of as
// they were found.
func (r *Reader) addCards(cards map[vocab.ID]vocab.Card, pieces []*piece) {
	for _, p := range pieces {
		if p.author == "" {
			continue
		}
		card := cards[p.author]
		if u, isLocal := r.Local.Owner(p.author); isLocal {
			card = vocab.Card{}
			if doc, err := r.Local.Document(u); err == nil { // an account that is gone is shown by nothing
				card = vocab.CardOf(p.author, doc)
			}
		} else if card == (vocab.Card{}) && p.by != nil {
			if doc, err := vocab.ParseDoc(p.by.Raw); err == nil { // it was parsed to find the actor
				card = vocab.CardOf(p.author, doc)
			}
		}
		cards[p.author] = card
	}
}

// show returns the piece as it is shown to a reader of these languages. followers is the collection
// of the author's.
func (p *piece) show(are db.Responses, followers vocab.ID, languages []string) Object {
	return Object{URI: p.ID, AuthorURI: p.author, Visibility: audience.Of(p.to, p.author, followers).Visibility(), InReplyTo: p.InReplyTo, Held: p.isHeld, Archived: p.isCopied,
		Replies: are.Replies, Likes: are.Likes, Dislikes: are.Dislikes, Boosts: are.Boosts, Liked: are.Liked, Disliked: are.Disliked, Boosted: are.Boosted,
		Object: vocab.Show(p.Doc, p.readable, languages).JSON()}
}

// keepVisible returns the pieces that may be shown to a reader: posts whose authors the user does
// not block and the gate lets through, and that are for the reader.
func (r *Reader) keepVisible(ctx context.Context, tx *db.Tx, pieces []*piece, isFor func(*piece) (bool, error)) (kept []*piece, err error) {
	var voices []vocab.ID
	for _, p := range pieces {
		voices = append(voices, p.voices...)
	}
	blocked, err := tx.Blocked(ctx, voices)
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

// isFor reports whether the piece is for the user. One that addresses nobody is for those that its
// server shows it to.
func (p *piece) isFor(ctx context.Context, tx *db.Tx, me vocab.ID) (bool, error) {
	if p.isHeld || len(p.to.All()) == 0 {
		return true, nil
	}
	viewer := audience.Viewer{ID: me}
	if p.by != nil && !audience.IsPublic(p.to) {
		follow, err := tx.Relationship(ctx, db.Following, p.by.ID)
		if err != nil {
			return false, err
		}
		if follow != nil && follow.Status == db.Accepted && p.by.Followers != "" {
			viewer.Circles = []vocab.ID{p.by.Followers}
		}
	}
	return audience.Of(p.to, p.author, "").MaySee(viewer), nil
}
