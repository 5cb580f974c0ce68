package server

import (
	"strings"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/page"
	"github.com/lightweb/lightweb/engine/vocab"
)

// ownPost returns an object of the user as a page shows it.
func (s *pages) ownPost(person page.Person, row user.Object) (page.Post, error) {
	o, err := row.Parse()
	if err != nil {
		return page.Post{}, err
	}
	p := page.Post{ID: o.ID, Page: s.local.PostPage(o.ID), Author: page.Author{Name: person.Name, Handle: person.Handle, Page: person.Page}, IsOwn: true,
		Answers: string(o.InReplyTo), Published: row.Published, Updated: o.Updated, Now: s.now(),
		Doc: vocab.Show(o.Doc, vocab.ReadableOf(o.Doc, row.Readable), nil)}
	return p, nil
}

// describePerson returns a user as pages show the user.
func (s *pages) describePerson(u vocab.Username) page.Person {
	user := s.profiles.User(u)
	p := page.Person{Name: vocab.OneLine(user.Profile.Name), Handle: s.local.Handle(u), Site: s.local.Host(), Actor: string(s.local.ID(u)), Page: s.local.Page(u),
		About: s.local.SummaryOf(u, user.Profile),
		Icon:  s.ownPicture(u, user.Profile.Icon), Image: s.ownPicture(u, user.Profile.Image), Indexable: user.Indexable,
		TagPage: func(tag string) string { return s.local.TagPage(u, tag) }}
	if p.Name == "" {
		p.Name = u.String()
	}
	for _, f := range user.Profile.Fields {
		p.Fields = append(p.Fields, page.Field(f))
	}
	return p
}

// ownPicture returns the address of a picture of a profile. The address is empty if the picture is
// on another server, because a page loads nothing from other servers.
func (s *pages) ownPicture(u vocab.Username, address vocab.ID) string {
	if strings.HasPrefix(string(address), string(s.local.Picture(u, ""))) {
		return string(address)
	}
	return ""
}
