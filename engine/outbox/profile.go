package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// tellProfile sends the user's current actor document to everybody who shows the user somewhere
// (ActivityPub §7.3). Only the activity that is sent has the document. The stored activity has
// the id of the actor, where the current document can be read, so that no old version of the
// document is stored.
type tellProfile struct {
	movedTo vocab.ID // the account that the profile names as the new one; empty for none
}

func (p *tellProfile) checkParams() error { return nil }

// findRecipients reads the actor after the digest of the profile. If the file changes between
// these two reads, the stored digest is older than the sent profile, and the profile is sent once
// more.
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

// findEarlier returns the Update that sent the present profile, if there is one.
func (p *tellProfile) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	if !x.unchanged {
		return "", p.checkMove(ctx, tx, x)
	}
	before, err := tx.Activities.Latest(ctx, vocab.Update, x.actor.ID, x.actor.ID)
	if err != nil || before == nil {
		return "", err
	}
	return before.URI, nil
}

// checkMove makes sure that the profile is not recorded as sent while it names a new account and
// no Move to that account was sent. The engine then has to send the Move and the profile.
func (p *tellProfile) checkMove(ctx context.Context, tx *user.Tx, x *exchange) error {
	if p.movedTo == "" {
		return nil
	}
	told, err := moveActor{p.movedTo}.findEarlier(ctx, tx, x)
	if told == "" {
		x.profile = nil
	}
	return err
}

// updateProfile changes the user's profile. Fields whose parameters are absent stay as they are.
// The file is written first. If a later step fails, the engine sees from the file that the
// profile was not sent.
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

// writeProfile puts the given parameters into the profile.
func (p *updateProfile) writeProfile(to *registry.Profile) {
	if p.Name != nil {
		to.Name = *p.Name
	}
	if p.Summary != nil {
		to.Summary, to.Mentions = *p.Summary, nil // the handles in the summary are looked up anew
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

// explainUnwritten turns the error of a failed write of the profile into the refusal of the
// action. The rules for a profile are checked only when the user's file is written.
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

// TellProfile sends the user's current actor document to everybody who shows the user somewhere.
// If the account has moved, it first sends the followers a Move. Neither the Move nor an
// unchanged document is sent a second time.
func (o *Outbox) TellProfile(ctx context.Context, u vocab.Username) error {
	if to := o.Local.MovedTo(u); to != "" {
		if err := o.tellMove(ctx, u, to); err != nil {
			return err
		}
	}
	x := &exchange{Dispatch: Dispatch{User: u, Action: pipeline.Action{Name: "UpdateProfile"}}, now: o.Now().UTC().Truncate(time.Millisecond), intent: &tellProfile{}}
	return o.pipeline.Run(ctx, x)
}

// noteProfile stores the digest of the profile that is being sent. If that fails, the profile
// is sent once more later.
func (o *Outbox) noteProfile(ctx context.Context, x *exchange) {
	if x.profile == nil || x.unchanged {
		return
	}
	if err := o.Instance.Users.SetToldProfile(context.WithoutCancel(ctx), x.User, x.profile); err != nil {
		o.Log.WarnContext(ctx, "told profile not noted", "user", x.User, "err", err)
	}
}
