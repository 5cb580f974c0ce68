package outbox

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of streams.
const (
	maxStreams       = 100
	maxStreamObjects = 10_000
	maxStreamName    = 100 // characters
)

// featured is the value of streamId that names the user's featured posts in place of a stream.
const featured = "featured"

// addressPublicly addresses everybody, with the user's followers in cc.
func (x *exchange) addressPublicly(local actor.Addresses) {
	x.to, x.cc = []vocab.ID{vocab.Public}, []vocab.ID{local.Followers(x.User)}
}

// createStream creates a stream: a public collection that is listed in the actor's streams
// (ActivityPub §4.1).
type createStream struct {
	Name string   `json:"name" schema:"streamName"`
	Tags []string `json:"tags" schema:"tags,optional"`
}

func (p *createStream) checkParams() (err error) {
	if strings.TrimSpace(p.Name) == "" || strings.ContainsFunc(p.Name, unicode.IsControl) {
		return badParam("name", "the name of a stream is a line of text")
	}
	p.Tags, err = checkTags(p.Tags)
	return err
}

func (p *createStream) findRecipients(_ context.Context, f *finder, x *exchange) error {
	id := uuid.New()
	x.target = f.local.Streams(x.User)
	x.stream = &user.Stream{ID: id, Name: p.Name, Tags: p.Tags, URI: x.target + vocab.ID("/"+id.String())}
	x.addressPublicly(f.local.Addresses)
	return nil
}

func (p *createStream) constructObject(_ *actor.Local, x *exchange) (string, any) {
	return vocab.Add, StreamDoc(x.actor.ID, *x.stream)
}

// StreamDoc returns the document of a stream for other servers, without the stream's objects.
func StreamDoc(owner vocab.ID, s user.Stream) vocab.Doc {
	d := vocab.Doc{"id": string(s.URI), "type": vocab.OrderedCollection, "name": s.Name, "attributedTo": string(owner)}
	about := vocab.Doc{"displayHint": "stream"}
	if len(s.Tags) > 0 {
		about["tags"] = listTexts(s.Tags)
	}
	d["lwMetadata"] = about
	return d
}

// streams is the name of the lock under which streams, and the objects in them, are counted
// against their limits.
const streams = "streams"

func (p *createStream) lockName() string { return streams }

func (p *createStream) findEarlier(ctx context.Context, tx *user.Tx, _ *exchange) (vocab.ID, error) {
	all, err := tx.Streams.List(ctx)
	if err != nil {
		return "", err
	}
	if n := slices.IndexFunc(all, func(s user.Stream) bool { return s.Name == p.Name }); n >= 0 {
		if !slices.Equal(all[n].Tags, p.Tags) {
			return "", fault.New(fault.Conflict, "there is a stream of that name with other tags").WithCode("stream_exists").At("/params/tags")
		}
		return all[n].Activity, nil
	}
	if len(all) >= maxStreams {
		return "", fault.New(fault.Conflict, "there are 100 streams already: delete one first").WithCode("too_many_streams")
	}
	return "", nil
}

// streamName names a stream of the user's.
type streamName struct {
	StreamID string `json:"streamId" schema:"stream"`
}

func (p *streamName) checkParams() error {
	if p.StreamID == featured {
		return nil
	}
	_, err := parseIdentifier("streamId", p.StreamID)
	return err
}

func (p *streamName) lockName() string { return streams }

func (p *streamName) readStream(ctx context.Context, tx *user.Tx) (*user.Stream, error) {
	s, err := tx.Streams.Find(ctx, vocab.IDOf(p.StreamID))
	if err == nil && s == nil {
		err = fault.New(fault.NotFound, "there is no such stream").WithCode("no_stream").At("/params/streamId")
	}
	return s, err
}

// findStream finds the stream that the action changes or deletes. The user's featured posts are
// not a stream, so x.stream stays nil for them.
func (p *streamName) findStream(ctx context.Context, f *finder, x *exchange) error {
	x.addressPublicly(f.local.Addresses)
	if p.StreamID == featured {
		x.target = f.local.Featured(x.User)
		return nil
	}
	return f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) (err error) {
		if x.stream, err = p.readStream(ctx, tx); err == nil {
			x.target = x.stream.URI
		}
		return err
	})
}

// deleteStream deletes a stream. Its objects stay.
type deleteStream struct{ streamName }

func (p *deleteStream) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	if p.StreamID == featured {
		return badParam("streamId", "featured is always there")
	}
	err := p.findStream(ctx, f, x)
	x.target = f.local.Streams(x.User)
	return err
}

func (p *deleteStream) constructObject(_ *actor.Local, x *exchange) (string, any) {
	return vocab.Remove, StreamDoc(x.actor.ID, *x.stream)
}

func (p *deleteStream) findEarlier(ctx context.Context, tx *user.Tx, _ *exchange) (vocab.ID, error) {
	_, err := p.readStream(ctx, tx)
	return "", err
}

// addToStream puts an object into a stream (ActivityPub §6.6).
type addToStream struct {
	about
	streamName

	object vocab.ID
}

func (p *addToStream) checkParams() error {
	if err := p.about.checkParams(); err != nil {
		return err
	}
	return p.streamName.checkParams()
}

func (p *addToStream) lockName() string { return p.streamName.lockName() }

func (p *addToStream) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	if err := p.findStream(ctx, f, x); err != nil {
		return err
	}
	obj, _, err := f.findObject(ctx, x, "objectId", p.ObjectID)
	if err != nil {
		return err
	}
	if !audience.IsPublic(obj.Addressing) {
		return refuseHidden("objectId")
	}
	if x.stream == nil && !obj.AttributedTo.Same(x.actor.ID) {
		return fault.New(fault.Forbidden, "the object is somebody else's").WithCode("not_own_object").At("/params/objectId")
	}
	p.object = obj.ID
	return nil
}

// refuseHidden returns the refusal of an object that may not be put into a stream because the
// object is not public. The parameter name is the action's parameter that names the object.
func refuseHidden(name string) error {
	return fault.New(fault.Forbidden, "streams are public, and only what everybody may see is put into one").WithCode("not_public").At("/params/" + name)
}

func (p *addToStream) constructObject(*actor.Local, *exchange) (string, any) {
	return vocab.Add, string(p.object)
}

func (p *addToStream) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	there, err := p.findAdd(ctx, tx, x, p.object)
	if err != nil || there != "" {
		return there, err
	}
	if x.stream == nil {
		return "", checkPins(ctx, tx, x.actor.ID)
	}
	s, err := p.readStream(ctx, tx)
	if err == nil && s.Objects >= maxStreamObjects {
		err = refuseFull("there are 10,000 objects in the stream already")
	}
	return "", err
}

// checkPins refuses a pin beyond user.MaxPins, because that pin would remove another pin without
// telling anybody.
func checkPins(ctx context.Context, tx *user.Tx, author vocab.ID) error {
	pins, err := tx.Pins.List(ctx, author)
	if err == nil && len(pins) >= user.MaxPins {
		err = refuseFull("20 posts are featured already: remove one first")
	}
	return err
}

func refuseFull(words string) error {
	return fault.New(fault.Conflict, words).WithCode("too_many_objects").At("/params/streamId")
}

// findAdd returns the id of the Add that put the object into the stream or among the featured
// posts. The id is empty when the object is not there.
func (p *streamName) findAdd(ctx context.Context, tx *user.Tx, x *exchange, object vocab.ID) (vocab.ID, error) {
	if x.stream == nil {
		pins, err := tx.Pins.List(ctx, x.actor.ID)
		if n := slices.IndexFunc(pins, func(pin user.Pin) bool { return pin.Object == object }); n >= 0 {
			return pins[n].Activity, err
		}
		return "", err
	}
	there, err := tx.Streams.FindObject(ctx, x.stream.URI, object)
	if err != nil || there == nil {
		return "", err
	}
	return there.Activity, nil
}

// removeFromStream takes an object out of a stream (ActivityPub §6.7).
type removeFromStream struct{ addToStream }

func (p *removeFromStream) findRecipients(ctx context.Context, f *finder, x *exchange) (err error) {
	if err := p.findStream(ctx, f, x); err != nil {
		return err
	}
	if p.object, err = f.findMeantID(ctx, x, "objectId", vocab.IDOf(p.ObjectID), "", handler.BringingTypes()...); err != nil {
		return err
	}
	return f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) error { return x.noteSpelling(ctx, tx, p.object) })
}

func (p *removeFromStream) constructObject(*actor.Local, *exchange) (string, any) {
	return vocab.Remove, string(p.object)
}

func (p *removeFromStream) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	there, err := p.findAdd(ctx, tx, x, p.object)
	if err == nil && there == "" {
		err = fault.New(fault.NotFound, "the object is not in the stream").WithCode("not_in_stream").At("/params/objectId")
	}
	return "", err
}
