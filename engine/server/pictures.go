package server

import (
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/outbox"
	"github.com/lightweb/lightweb/engine/picture"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// pictureRoom is the room for answers, in bytes, that a picture takes while it is sent. It is
// more than the buffer of the copy, so that there is a limit to the files that are open at the
// same time.
const pictureRoom = 128 << 10

// cacheForever is the Cache-Control of addresses whose content never changes.
const cacheForever = "public, max-age=31536000, immutable"

// Pictures stores the pictures of users' profiles.
type Pictures interface {
	StorePicture(u vocab.Username, data []byte, extension string) (name string, err error)
	OpenPicture(u vocab.Username, name string) (*os.File, error)
	PrunePictures(u vocab.Username) error
	// Problem returns why the user's profile cannot be changed, or nil if it can.
	Problem(u vocab.Username) error
}

// pictures receives and serves the pictures of profiles.
type pictures struct {
	*clientAPI
	files Pictures
	maker *picture.Maker
}

// pictureTypes maps the extensions of served pictures to their media types.
var pictureTypes = map[string]string{".png": "image/png", ".jpg": "image/jpeg"}

// getPicture serves a picture to everybody. It sends the picture from its file, so that clients
// that read slowly take little memory. A browser that opens the picture as a page runs nothing in
// it.
func (s *pictures) getPicture(a *answer, r *http.Request, p httprouter.Params) error {
	u, err := s.findResident(r, p)
	if err != nil {
		return err
	}
	name := p.ByName("name")
	giveBack, err := a.takeRoom(pictureRoom)
	if err != nil {
		return err
	}
	defer giveBack()
	f, err := s.files.OpenPicture(u, name)
	if errors.Is(err, fs.ErrNotExist) {
		return errNothing
	}
	if err != nil {
		return err
	}
	defer f.Close()
	a.setCache(cacheForever)
	a.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	a.Header().Set("Content-Type", pictureTypes[path.Ext(name)])
	a.Header().Set("ETag", `"`+name+`"`) // the name is a hash of the data
	http.ServeContent(a, r, name, time.Time{}, f)
	return nil
}

// pictured is the answer to a request that sets or removes a picture.
type pictured struct {
	Success    bool     `json:"success"`
	URL        vocab.ID `json:"url,omitempty"` // the public address
	ActivityID vocab.ID `json:"activityId,omitempty"`
}

// putPicture makes the uploaded picture the icon or image of the user's profile.
func (s *pictures) putPicture(member string, side int) handle {
	return func(a *answer, r *http.Request, _ httprouter.Params) error {
		t, err := s.authorizeChange(a, r)
		if err != nil {
			return err
		}
		mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || !picture.IsTaken(mediaType) || r.Header.Get("Content-Encoding") != "" {
			return fault.New(fault.Unsupported, "send a PNG, JPEG, GIF or WebP, with its Content-Type").WithCode("unsupported_picture")
		}
		body, err := readBody(a, r, s.bodies, t.User.String(), picture.MaxBytes)
		if err != nil {
			return err
		}
		made, err := s.maker.Make(r.Context(), body, mediaType, side)
		if err != nil {
			return err
		}
		name, err := s.files.StorePicture(t.User, made.Data, made.Extension)
		if err != nil {
			return err
		}
		return s.setPicture(a, r, t, member, s.local.Picture(t.User, name))
	}
}

// deletePicture removes the icon or image from the user's profile.
func (s *pictures) deletePicture(member string) handle {
	return func(a *answer, r *http.Request, _ httprouter.Params) error {
		t, err := s.authorizeChange(a, r)
		if err != nil {
			return err
		}
		return s.setPicture(a, r, t, member, "")
	}
}

// authorizeChange returns the token of a request that changes the user's profile. It refuses the
// change while the user's configuration cannot be read.
func (s *pictures) authorizeChange(a *answer, r *http.Request) (instance.Token, error) {
	t, err := s.authorize(a, r, outbox.RequiredScopes("UpdateProfile")...)
	if err != nil {
		return t, err
	}
	if _, err := readQuery(r); err != nil {
		return t, err
	}
	if s.files.Problem(t.User) != nil {
		return t, fault.New(fault.Conflict, "the user's configuration cannot be read: its file has to be mended first").WithCode("broken_configuration")
	}
	return t, nil
}

// setPicture dispatches the change, and removes pictures that the profile no longer uses.
func (s *pictures) setPicture(a *answer, r *http.Request, t instance.Token, member string, url vocab.ID) error {
	params := vocab.Doc{member: string(url)}.JSON()
	result, err := s.outbox.Dispatch(r.Context(), outbox.Dispatch{User: t.User, Token: t.ID, Action: pipeline.Action{Name: "UpdateProfile", Params: params}})
	if err := errors.Join(err, s.files.PrunePictures(t.User)); err != nil {
		return err
	}
	return a.sendJSON(r, pictured{true, url, result.ActivityID})
}
