package server

import (
	"context"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// ownPackage is a key package as its user's clients see it.
type ownPackage struct {
	ID         uuid.UUID `json:"id"`
	Ref        []byte    `json:"ref"`
	Device     string    `json:"deviceId"`
	Suite      string    `json:"ciphersuite"`
	LastResort bool      `json:"lastResort"`
	NotAfter   time.Time `json:"notAfter"`
	Available  bool      `json:"available"` // false: it was claimed, replaced or revoked
}

type packageList struct {
	Items []ownPackage `json:"items"`
}

func showPackages(rows []user.KeyPackage) packageList {
	list := packageList{Items: []ownPackage{}}
	for _, k := range rows {
		list.Items = append(list.Items, ownPackage{k.ID, k.Ref, k.Device, mls.CipherSuite(k.Suite).String(), k.LastResort, k.NotAfter.UTC(), k.State == user.PackageAvailable})
	}
	return list
}

// postKeyPackages publishes key packages of the user's devices.
func (s *conversations) postKeyPackages(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeWrite)
	if err != nil {
		return err
	}
	var body struct {
		KeyPackages []struct {
			Device     string `json:"deviceId"`
			Content    []byte `json:"content"`
			LastResort bool   `json:"lastResort"`
		} `json:"keyPackages"`
	}
	if err := s.readJSON(a, r, t.User, &body); err != nil {
		return err
	}
	if len(body.KeyPackages) == 0 {
		return fault.New(fault.Unprocessable, "keyPackages is missing").WithCode("invalid_parameter").At("/keyPackages")
	}
	packages := make([]conversation.NewPackage, len(body.KeyPackages))
	for i, k := range body.KeyPackages {
		packages[i] = conversation.NewPackage(k)
	}
	rows, err := s.registry.Publish(r.Context(), t.User, packages)
	if err != nil {
		return err
	}
	return a.sendCreated(http.StatusCreated, showPackages(rows))
}

// getKeyPackages lists the user's key packages that are available.
func (s *conversations) getKeyPackages(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeRead)
	if err != nil {
		return err
	}
	if _, err := readQuery(r); err != nil {
		return err
	}
	rows, err := s.registry.Packages(r.Context(), t.User)
	if err != nil {
		return err
	}
	return a.sendJSON(r, showPackages(rows))
}

// packageStats counts key packages.
type packageStats struct {
	Available  int  `json:"available"`
	LastResort int  `json:"lastResort"`
	Claimed    int  `json:"claimed"`
	Expired    int  `json:"expired"`
	Revoked    int  `json:"revoked"`
	NeedsMore  bool `json:"needsReplenish"`
}

// getPackageStats counts the user's key packages.
func (s *conversations) getPackageStats(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeRead)
	if err != nil {
		return err
	}
	if _, err := readQuery(r); err != nil {
		return err
	}
	n, err := s.registry.PackageStats(r.Context(), t.User)
	if err != nil {
		return err
	}
	return a.sendJSON(r, packageStats{n.OneTime, n.LastResort, n.Claimed, n.Expired, n.Revoked, n.NeedsMore})
}

// deleteKeyPackage revokes a key package.
func (s *conversations) deleteKeyPackage(a *answer, r *http.Request, p httprouter.Params) error {
	return s.change(a, r, p, "package", s.registry.Revoke)
}

// claimedPackages are key packages of an actor, one for each device.
type claimedPackages struct {
	Items []claimedPackage `json:"items"`
}

type claimedPackage struct {
	Ref     []byte `json:"ref"`
	Suite   string `json:"ciphersuite"`
	Content []byte `json:"content"`
}

// postClaimOf claims key packages of an actor, that is, takes one for each device, so that the
// user can add the actor to a conversation.
func (s *conversations) postClaimOf(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeWrite)
	if err != nil {
		return err
	}
	var body struct {
		Actor string `json:"actor"`
	}
	if err := s.readJSON(a, r, t.User, &body); err != nil {
		return err
	}
	actor, err := vocab.ParseID(body.Actor)
	if err != nil {
		return fault.Wrap(fault.Unprocessable, "actor is the id of an actor", err).WithCode("invalid_parameter").At("/actor")
	}
	if err := s.countLookup(a, payerOf(t)); err != nil {
		return err
	}
	all, err := s.members.ClaimOf(r.Context(), t.User, actor)
	if err != nil {
		return err
	}
	list := claimedPackages{Items: []claimedPackage{}}
	for _, k := range all {
		list.Items = append(list.Items, claimedPackage{k.Ref, k.Suite.String(), k.Content})
	}
	return a.sendCreated(http.StatusOK, list)
}

// publicPackages shows users' key packages to other servers.
type publicPackages struct {
	*federation
	registry *conversation.Registry
	claims   *policy.Limiter
	paused   bool
}

// getCollection shows everybody the key packages of last resort, one for each device.
func (s *publicPackages) getCollection(a *answer, r *http.Request, p httprouter.Params) error {
	contentType, u, err := s.admit(a, r, p)
	if err != nil {
		return err
	}
	var items []any
	err = s.readAsStranger(r, u, func(ctx context.Context, tx *user.Tx) error {
		rows, err := s.registry.PublicPackages(ctx, tx)
		for _, k := range rows {
			items = append(items, string(s.packageID(u, k)))
		}
		return err
	})
	if err != nil {
		return err
	}
	a.setCache("no-store") // a package is replaced once it was used
	a.send(http.StatusOK, contentType, packageCollection(s.local.KeyPackages(u), vocab.Context(), items))
	return nil
}

func (s *publicPackages) admit(a *answer, r *http.Request, p httprouter.Params) (contentType string, u vocab.Username, err error) {
	a.addVary(whoAsks...)
	if contentType, err = a.chooseDocument(r); err != nil {
		return contentType, u, err
	}
	if err := s.admitReader(a, r); err != nil {
		return contentType, u, err
	}
	u, err = s.findResident(r, p)
	return contentType, u, err
}

// packageCollection writes an unpaged Collection. It leaves out the member items if there are
// none, because in JSON-LD an empty list means the same as no list.
func packageCollection(id vocab.ID, context any, items []any) []byte {
	d := vocab.Doc{"@context": context, "type": "Collection", "totalItems": len(items)}
	if id != "" {
		d["id"] = string(id)
	}
	if len(items) > 0 {
		d["items"] = items
	}
	return d.JSON()
}

// getPackage shows everybody a key package of last resort.
func (s *publicPackages) getPackage(a *answer, r *http.Request, p httprouter.Params) error {
	contentType, u, err := s.admit(a, r, p)
	if err != nil {
		return err
	}
	id, err := parseID(p, "package")
	if err != nil {
		return err
	}
	var k *user.KeyPackage
	err = s.readAsStranger(r, u, func(ctx context.Context, tx *user.Tx) (err error) {
		k, err = s.registry.PublicPackage(ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}
	d := s.packageDoc(u, *k)
	d["@context"] = vocab.MessagesContext()
	a.setCache("no-store")
	a.send(http.StatusOK, contentType, d.JSON())
	return nil
}

func (s *publicPackages) packageID(u vocab.Username, k user.KeyPackage) vocab.ID {
	return s.local.KeyPackages(u) + "/" + vocab.ID(k.ID.String())
}

// packageDoc returns a key package in the form of the SWICG draft.
func (s *publicPackages) packageDoc(u vocab.Username, k user.KeyPackage) vocab.Doc {
	return vocab.Doc{"id": string(s.packageID(u, k)), "type": "KeyPackage", "attributedTo": string(s.local.ID(u)), "to": []any{string(vocab.Public)},
		"published": k.CreatedAt.Format(time.RFC3339), "mediaType": "message/mls", "encoding": "base64",
		"ciphersuite": mls.CipherSuite(k.Suite).String(), "content": base64.StdEncoding.EncodeToString(k.Content)}
}

// maxClaim limits the bytes of the body of a claim. The content of the body is not used, but the
// signature has to cover a body.
const maxClaim = 4 << 10

// postClaim gives the actor who signed the request one key package for each of the user's
// devices.
func (s *publicPackages) postClaim(a *answer, r *http.Request, p httprouter.Params) error {
	a.setCache("no-store")
	if s.paused {
		return fault.New(fault.Unavailable, "federation is paused here").WithCode("federation_paused")
	}
	client := s.clientOf(r)
	if err := s.checkRate(client); err != nil {
		return err
	}
	body, err := readBody(a, r, s.bodies, policy.NameAddress(client), maxClaim)
	if err != nil {
		return err
	}
	signer, err := s.proveSigner(r, body)
	if err != nil {
		a.Header().Set("WWW-Authenticate", wantsSignature)
		return err
	}
	if err := s.gate.CheckActor(signer); err != nil {
		return err
	}
	if ok, after := s.claims.Allow(string(signer)); !ok { // this is checked first, so that a claim beyond this limit does not count against the signer's host
		return fault.New(fault.RateLimited, "too many key packages are claimed").After(after)
	}
	if err := s.inbox.Count(signer); err != nil {
		return err
	}
	u, err := s.findResident(r, p)
	if err != nil {
		return err
	}
	err = s.readAsStranger(r, u, func(ctx context.Context, tx *user.Tx) error { // Claim checks again, in a transaction that writes
		return conversation.CheckClaimer(ctx, tx, s.local.ID(u), signer, s.registry.Now())
	})
	if err != nil {
		return err
	}
	rows, err := s.registry.Claim(r.Context(), u, signer)
	if err != nil {
		return err
	}
	items := make([]any, len(rows))
	for i, k := range rows {
		items[i] = s.packageDoc(u, k)
	}
	a.send(http.StatusOK, vocab.ActivityJSON, packageCollection("", vocab.MessagesContext(), items))
	return nil
}
