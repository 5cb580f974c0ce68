package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// tellProfile tells everybody who shows the user somewhere how its actor looks now (ActivityPub
// §7.3). The activity is stored with the id of the actor, since the document is at that address:
// only those who are told get it whole, and no old version of it stays.
type tellProfile struct {
	movedTo vocab.ID // where the profile says that the account has moved; empty for nowhere
}

func (p *tellProfile) checkParams() error { return nil }

// findRecipients reads the actor after what stands for it: when the file changes in between, what
// others are told passes for older than it is, and they are told once more.
func (p *tellProfile) findRecipients(ctx context.Context, f *finder, x *exchange) (err error) {
	if err := f.linkBio(ctx, x); err != nil {
		return err
	}
	x.profile = f.local.ProfileDigest(x.User)
	p.movedTo = f.local.MovedTo(x.User)
	if x.actor, err = f.local.Actor(x.User); err != nil {
		return fmt.Errorf("read the user's actor: %w", err)
	}
	if x.embedded, err = f.local.Document(x.User); err != nil {
		return fmt.Errorf("read the user's actor: %w", err)
	}
	told, err := f.instance.Users.ToldProfiles(ctx, []vocab.Username{x.User})
	if err != nil {
		return err
	}
	x.unchanged = len(told) == 1 && bytes.Equal(told[0].Digest, x.profile)
	x.to, x.cc = []vocab.ID{vocab.Public}, []vocab.ID{f.local.Followers(x.User)}
	return nil
}

func (p *tellProfile) constructObject(_ *actor.Local, x *exchange) (string, any) {
	return vocab.Update, string(x.actor.ID)
}

func (p *tellProfile) lockName() string { return "profile" }

// findEarlier returns the activity that told of the profile as it is.
func (p *tellProfile) findEarlier(ctx context.Context, tx *db.Tx, x *exchange) (vocab.ID, error) {
	if !x.unchanged {
		return "", p.checkMove(ctx, tx, x)
	}
	before, err := tx.LatestActivity(ctx, vocab.Update, x.actor.ID, x.actor.ID)
	if err != nil || before == nil {
		return "", err
	}
	return before.URI, nil
}

// checkMove leaves it unnoted that others are told of a profile, when no follower was told of the
// move that it says: the engine has to tell of both.
func (p *tellProfile) checkMove(ctx context.Context, tx *db.Tx, x *exchange) error {
	if p.movedTo == "" {
		return nil
	}
	told, err := moveActor{p.movedTo}.findEarlier(ctx, tx, x)
	if told == "" {
		x.profile = nil
	}
	return err
}

// updateProfile changes what the user says about itself. Absent parameters stay as they are. The
// file is written first: whatever happens then, the engine sees that others were not told of it.
type updateProfile struct {
	tellProfile
	Name    *string            `json:"name" schema:"person,optional"`
	Summary *string            `json:"summary" schema:"about,optional"`
	Icon    *string            `json:"icon" schema:"picture,optional"`
	Image   *string            `json:"image" schema:"picture,optional"`
	Fields  *[]json.RawMessage `json:"fields" schema:"fields,optional"`

	lines []registry.Field
}

// profileField is a line of a profile.
type profileField struct {
	Name  string `json:"name" schema:"fieldName"`
	Value string `json:"value" schema:"fieldValue,optional"`
}

func (p *updateProfile) checkParams() error {
	if p.Name == nil && p.Summary == nil && p.Icon == nil && p.Image == nil && p.Fields == nil {
		return fault.New(fault.Unprocessable, "there is nothing to change").WithCode("invalid_parameter").At("/params")
	}
	if p.Fields == nil {
		return nil
	}
	if len(*p.Fields) > registry.MaxFields {
		return badParam("fields", "more than 16 fields")
	}
	for n, raw := range *p.Fields {
		var f profileField
		if err := readObject(raw, &f, fmt.Sprintf("fields/%d", n)); err != nil {
			return err
		}
		p.lines = append(p.lines, registry.Field(f))
	}
	return nil
}

func (p *updateProfile) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	err := f.profiles.UpdateUser(x.User, func(c *registry.User) error { p.writeProfile(&c.Profile); return nil })
	if err != nil {
		return explainUnwritten(err)
	}
	return p.tellProfile.findRecipients(ctx, f, x)
}

// writeProfile puts what is given into the profile.
func (p *updateProfile) writeProfile(to *registry.Profile) {
	if p.Name != nil {
		to.Name = *p.Name
	}
	if p.Summary != nil {
		to.Summary, to.Mentions = *p.Summary, nil // its handles are looked up anew
	}
	if p.Icon != nil {
		to.Icon = vocab.ID(*p.Icon)
	}
	if p.Image != nil {
		to.Image = vocab.ID(*p.Image)
	}
	if p.Fields != nil {
		to.Fields = p.lines
	}
}

// explainUnwritten says why the profile stays as it was. The rules are the file's.
func explainUnwritten(err error) error {
	e := fault.Of(err)
	switch {
	case err == nil:
		return nil
	case e == nil:
		return fmt.Errorf("write the profile: %w", err)
	case e.Kind == fault.Invalid:
		return fault.Wrap(fault.Unprocessable, e.Public, err).WithCode("invalid_parameter").At(strings.Replace(e.Pointer, "/profile", "/params", 1))
	case e.Kind == fault.Config:
		return fault.Wrap(fault.Conflict, "the user's configuration cannot be read: its file has to be mended first", err).WithCode("broken_configuration")
	}
	return fmt.Errorf("write the profile: %w", err)
}

// TellProfile tells everybody who shows the user somewhere how its actor looks now, unless they
// were told, and before that the followers where it has moved.
func (o *Outbox) TellProfile(ctx context.Context, u vocab.Username) error {
	if to := o.Local.MovedTo(u); to != "" {
		if err := o.tellMove(ctx, u, to); err != nil {
			return err
		}
	}
	x := &exchange{Dispatch: Dispatch{User: u, Action: pipeline.Action{Name: "UpdateProfile"}}, now: o.Now().UTC().Truncate(time.Millisecond), intent: &tellProfile{}}
	return o.pipeline.Run(ctx, x)
}

// noteProfile stores of which profile others are told. It may fail: they are told once more then.
func (o *Outbox) noteProfile(ctx context.Context, x *exchange) {
	if x.profile == nil || x.unchanged {
		return
	}
	if err := o.Instance.Users.SetToldProfile(context.WithoutCancel(ctx), x.User, x.profile); err != nil {
		o.Log.WarnContext(ctx, "told profile not noted", "user", x.User, "err", err)
	}
}
