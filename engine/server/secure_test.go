package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

func secure(d *server.Deps) { d.SecureMode = true }

// block makes u block an actor.
func (f *fixture) block(u vocab.Username, who vocab.ID) {
	f.Helper()
	f.write(u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Blocks.Add(ctx, user.Block{Actor: who, Direction: user.Outbound, Activity: f.local.NewActivityID(u)}, start)
	})
}

// signedWithoutQuery signs a request by draft-cavage. The signature does not cover the query, as
// Fedify's does not.
func (f *fixture) signedWithoutQuery(k signature.Key) asking {
	return func(r *http.Request) {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		c, err := http.NewRequest(r.Method, origin+path, nil)
		if err != nil {
			f.Fatal(err)
		}
		if err := signature.Sign(c, nil, k, signature.Cavage, start); err != nil {
			f.Fatal(err)
		}
		for name, v := range c.Header {
			r.Header[name] = v
		}
	}
}

func TestSecureModeShowsUsersOnlyToWhoProvesWhoItIs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, secure)
	activity, object := f.post(f.alice, "public", start, vocab.Public)
	_, private := f.post(f.alice, "private", start, f.local.Followers(f.alice))
	enemy, enemyKey := f.remote("https://peer.example/users/enemy")
	f.block(f.alice, enemy.ID)
	outbox := string(f.local.Outbox(f.alice))
	forged := []asking{f.signed(f.carolKey, signature.RFC9421), header("Signature", "sig1=:AAAA:")}
	for _, c := range []struct {
		name, path string
		enemy      int // the status for an actor that alice blocks
		there      bool
	}{
		{"the outbox", outbox, 403, true},
		{"a page of it", outbox + "?page=true", 403, true},
		{"followers", string(f.local.Followers(f.alice)), 403, true},
		{"following", string(f.local.Following(f.alice)) + "?page=true", 403, true},
		{"an object", string(object), 404, true},
		{"an activity", string(activity), 404, true},
		{"with a query", string(object) + "?a=1", 404, true},
		{"a private object", string(private), 404, false},
		{"an unknown object", string(f.local.NewObjectID(f.alice)), 404, false},
		{"of nobody", "/users/nobody/outbox", 404, false},
	} {
		shown := 404
		if c.there {
			shown = 200
		}
		for _, asked := range []struct {
			by     string
			how    []asking
			status int
			scheme string
		}{
			{"SG-21 anybody", nil, 401, "Signature"},
			{"AC-10 a forged signature", forged, 401, "Signature"},
			{"AC-10 no signature at all", []asking{header("Signature", "x")}, 401, "Signature"},
			{"SG-21 a blocked host", []asking{f.signed(f.blockedKey(), signature.RFC9421)}, 403, ""},
			{"SG-21 an actor that alice blocks", []asking{f.signed(enemyKey, signature.RFC9421)}, c.enemy, ""},
			{"carol", []asking{f.signed(f.carolKey, signature.RFC9421)}, shown, ""},
			{"carol, the other way", []asking{f.signed(f.carolKey, signature.Cavage)}, shown, ""},
			{"CO-11 carol, without the query", []asking{f.signedWithoutQuery(f.carolKey)}, shown, ""},
			{"bob", []asking{bearerToken(f.token(f.bob, "read"))}, shown, ""},
			{"a token that does not hold", []asking{bearerToken("lw_bob_" + strings.Repeat("x", 43))}, 401, "Bearer"},
		} {
			r := f.get(c.path, asked.how...)
			if r.StatusCode != asked.status || !strings.HasPrefix(r.Header.Get("WWW-Authenticate"), asked.scheme) {
				t.Errorf("%s, asked by %s: %d %v, want %d: %s", c.name, asked.by, r.StatusCode, r.Header, asked.status, r.body)
				continue
			}
			if vary := strings.Join(r.Header.Values("Vary"), ","); !strings.Contains(vary, "Signature") || strings.Contains(r.Header.Get("Cache-Control"), "public") {
				t.Errorf("PRV-11: %s, asked by %s: a cache may show it to others: %v", c.name, asked.by, r.Header)
			}
			if asked.status != 200 && asked.status != 403 && r.anonymous() != f.get(strings.Replace(string(object), string(object[len(object)-36:]), "00000000-0000-7000-8000-000000000000", 1), asked.how...).anonymous() {
				t.Errorf("PRV-13: %s, asked by %s, differs from what is not there: %s", c.name, asked.by, r.anonymous())
			}
		}
	}
}

func TestSecureModeShowsActorsToWhoSigns(t *testing.T) {
	t.Parallel()
	f := newFixture(t, secure)
	stranger := signature.Key{ID: "https://new.example/actor#main-key", Private: remoteKey()}
	for _, c := range []struct {
		name, path string
		others     error // the error of every fetch from another server
		how        []asking
		status     int
	}{
		{"SG-21 anybody", "/users/alice", nil, nil, 401},
		{"SG-21 anybody, of nobody", "/users/nobody", nil, nil, 401},
		{"AC-10 a forged signature", "/users/alice", nil, []asking{f.signed(f.carolKey, signature.RFC9421), header("Signature", "sig1=:AAAA:")}, 401},
		{"AC-10 a signature of long ago", "/users/alice", nil, []asking{f.signed(f.carolKey, signature.RFC9421), header("Signature-Input",
			`sig1=("@method" "@target-uri" "@authority");created=1;keyid="`+f.carolKey.ID+`"`)}, 401},
		{"carol", "/users/alice", nil, []asking{f.signed(f.carolKey, signature.Cavage)}, 200},
		{"carol, of nobody", "/users/nobody", nil, []asking{f.signed(f.carolKey, signature.Cavage)}, 404},
		{"bob", "/users/alice", nil, []asking{bearerToken(f.token(f.bob, "read"))}, 200},
		{"a stranger whose server waits for us", "/users/alice", fault.New(fault.Unavailable, "it does not answer"), []asking{f.signed(stranger, signature.RFC9421)}, 200},
		{"a stranger that we ask too much of", "/users/alice", fault.New(fault.RateLimited, "slow down"), []asking{f.signed(stranger, signature.RFC9421)}, 200},
		{"the same, for what is no actor", "/users/alice/outbox", fault.New(fault.Unavailable, "it does not answer"), []asking{f.signed(stranger, signature.RFC9421)}, 503},
		{"SG-21 a blocked host", "/users/alice", nil, []asking{f.signed(f.blockedKey(), signature.RFC9421)}, 403},
		{"AC-05 the instance, to anybody", "/actor", nil, nil, 200},
		{"AC-05 the instance, to a forged signature", "/actor", nil, []asking{header("Signature", "x")}, 200},
		{"WebFinger", "/.well-known/webfinger?resource=acct:alice@example.org", nil, nil, 200},
		{"NodeInfo", "/nodeinfo/2.1", nil, nil, 200},
		{"AC-10 a stranger whose server shows no key", "/users/alice", fault.New(fault.NotFound, "it is not there"), []asking{f.signed(
			signature.Key{ID: "https://other.example/actor#main-key", Private: remoteKey()}, signature.RFC9421)}, 401},
	} {
		f.others.err = c.others
		r := f.get(c.path, c.how...)
		if r.StatusCode != c.status {
			t.Errorf("%s: %d, want %d: %s", c.name, r.StatusCode, c.status, r.body)
		}
		if c.path == "/users/alice" && strings.Contains(r.Header.Get("Cache-Control"), "public") {
			t.Errorf("PRV-11: %s: a cache may show it to others: %v", c.name, r.Header)
		}
	}
}
