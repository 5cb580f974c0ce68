package outbox

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	d := town(t)
	theirs := d.world.post("https://p.example/notes/private", bob, bob+"/followers")
	d.world.post("https://p.example/notes/forged", "https://victim.example/users/eve", public)
	d.world.objects["https://p.example/sealed/1"] = `{"id":"https://p.example/sealed/1","type":"ChatMessage","attributedTo":"` + bob + `","to":"` + string(me) + `","content":"AAAA"}`
	d.world.fails["https://down.example/users/x"] = fault.New(fault.Unavailable, "down")
	d.world.fails["https://blocked.example/users/x"] = fault.New(fault.Forbidden, "blocked")
	d.world.fails["https://gone.example/users/x"] = fault.New(fault.Gone, "the actor was deleted")
	d.world.fails["https://page.example/users/x"] = fault.New(fault.Protocol, "no actor")
	d.world.fails["https://nowhere.example/users/x"] = fault.New(fault.NoHost, "does not resolve")
	d.world.fails["https://secret.example/users/x"] = fault.New(fault.NotFound, "not shown").WithCode(actor.PeerRefused)
	d.world.fails["https://stored.example/users/x"] = fault.New(fault.Unavailable, "down").WithCode("database_unavailable")
	d.world.fails["https://paused.example/users/x"] = transport.ErrPaused
	d.world.fails["https://often.example/users/x"] = fault.New(fault.RateLimited, "too much").WithCode("key_fetch_rate")
	d.must("Like", map[string]any{"objectId": theirs})
	for _, c := range []struct {
		name, action, params string
		kind                 fault.Kind
		code, pointer        string
	}{
		{"unknown action", "Explode", `{}`, fault.Unprocessable, "unknown_action", "/action"},
		{"name in another case", "follow", `{"actorUri":"` + bob + `"}`, fault.Unprocessable, "unknown_action", "/action"},
		{"no params", "Follow", ``, fault.Unprocessable, "invalid_parameter", "/params/actorUri"},
		{"params are no object", "Follow", `[]`, fault.Unprocessable, "invalid_parameter", "/params"},
		{"a parameter twice", "Follow", `{"actorUri":"` + bob + `","actorUri":"` + dan + `"}`, fault.Unprocessable, "invalid_parameter", "/params"},
		{"a parameter in another case", "CreateNote", `{"Content":"x"}`, fault.Unprocessable, "invalid_parameter", "/params/Content"},
		{"actor override", "CreateNote", `{"content":"x","actor":"` + bob + `"}`, fault.Unprocessable, "invalid_parameter", "/params/actor"},
		{"id override", "CreateNote", `{"content":"x","id":"` + here + `/x"}`, fault.Unprocessable, "invalid_parameter", "/params/id"},
		{"published override", "CreateNote", `{"content":"x","published":"2020-01-01T00:00:00Z"}`, fault.Unprocessable, "invalid_parameter", "/params/published"},
		{"hidden recipients", "CreateNote", `{"content":"x","bto":["` + bob + `"]}`, fault.Unprocessable, "invalid_parameter", "/params/bto"},
		{"prototype key", "CreateNote", `{"content":"x","__proto__":{}}`, fault.Unprocessable, "invalid_parameter", "/params/__proto__"},
		{"a slash in a name", "CreateNote", `{"a/b":1}`, fault.Unprocessable, "invalid_parameter", "/params/a~1b"},
		{"wrong type", "CreateNote", `{"content":7}`, fault.Unprocessable, "invalid_parameter", "/params/content"},
		{"NUL", "CreateNote", `{"content":"a\u0000b"}`, fault.Unprocessable, "invalid_parameter", "/params"},
		{"empty content", "CreateNote", `{"content":" \n"}`, fault.Unprocessable, "invalid_parameter", "/params/content"},
		{"huge content", "CreateNote", `{"content":"` + strings.Repeat("x", maxContent+1) + `"}`, fault.Unprocessable, "invalid_parameter", "/params/content"},
		{"too many tags", "CreateNote", `{"content":"x","tags":["` + strings.Repeat(`a","`, maxTags) + `b"]}`, fault.Unprocessable, "invalid_parameter", "/params/tags"},
		{"a long tag", "CreateNote", `{"content":"x","tags":["a","` + strings.Repeat("x", maxTag+1) + `"]}`, fault.Unprocessable, "invalid_parameter", "/params/tags/1"},
		{"no such visibility", "CreateNote", `{"content":"x","visibility":"secret"}`, fault.Unprocessable, "invalid_parameter", "/params/visibility"},
		{"visibility against to", "CreateNote", `{"content":"x","visibility":"direct","to":["` + public + `","` + bob + `"]}`, fault.Unprocessable, "invalid_parameter", "/params/visibility"},
		{"direct to nobody", "CreateNote", `{"content":"x","visibility":"direct"}`, fault.Unprocessable, "invalid_parameter", "/params/to"},
		{"direct to herself", "CreateNote", `{"content":"x","visibility":"direct","to":["` + string(me) + `"]}`, fault.Unprocessable, "invalid_parameter", "/params/to"},
		{"to another's collection", "CreateNote", `{"content":"x","to":["` + here + `/users/zoe/groups/1"]}`, fault.Unprocessable, "no_such_user", "/params/to/0"},
		{"to nobody who is there", "CreateNote", `{"content":"x","cc":["@nobody@p.example"]}`, fault.Unprocessable, "no_such_user", "/params/cc/0"},
		{"to a server that is down", "CreateNote", `{"content":"x","to":["https://down.example/users/x"]}`, fault.Unavailable, "unreachable", "/params/to/0"},
		{"follow of herself", "Follow", `{"actorUri":"` + string(me) + `"}`, fault.Unprocessable, "invalid_parameter", "/params/actorUri"},
		{"follow of a local nobody", "Follow", `{"actorUri":"` + here + `/users/zoe"}`, fault.Unprocessable, "no_such_user", "/params/actorUri"},
		{"follow of what is no handle", "Follow", `{"actorUri":"bob"}`, fault.Unprocessable, "invalid_parameter", "/params/actorUri"},
		{"follow of nobody there", "Follow", `{"actorUri":"@nobody@p.example"}`, fault.Unprocessable, "no_such_user", "/params/actorUri"},
		{"follow of an actor who is gone", "Follow", `{"actorUri":"https://gone.example/users/x"}`, fault.Unprocessable, "no_such_user", "/params/actorUri"},
		{"follow of a page", "Follow", `{"actorUri":"https://page.example/users/x"}`, fault.Unprocessable, "no_such_user", "/params/actorUri"},
		{"follow on no host", "Follow", `{"actorUri":"@x@nowhere.example"}`, fault.Unprocessable, "no_such_host", "/params/actorUri"},
		{"follow of who is not shown", "Follow", `{"actorUri":"https://secret.example/users/x"}`, fault.Unprocessable, "peer_refused", "/params/actorUri"},
		{"follow on a server that is down", "Follow", `{"actorUri":"@x@down.example"}`, fault.Unavailable, "unreachable", "/params/actorUri"},
		{"follow while the database is down", "Follow", `{"actorUri":"https://stored.example/users/x"}`, fault.Unavailable, "database_unavailable", ""},
		{"follow while federation is paused", "Follow", `{"actorUri":"https://paused.example/users/x"}`, fault.Unavailable, "federation_paused", ""},
		{"follow on a domain of which too much was asked", "Follow", `{"actorUri":"https://often.example/users/x"}`, fault.RateLimited, "key_fetch_rate", ""},
		{"follow of a blocked domain", "Follow", `{"actorUri":"https://blocked.example/users/x"}`, fault.Forbidden, "", ""},
		{"unfollow of somebody who is not followed", "Unfollow", `{"actorUri":"` + bob + `"}`, fault.NotFound, "not_following", "/params/actorUri"},
		{"answer to no Follow", "AcceptFollow", `{"actorUri":"` + bob + `"}`, fault.NotFound, "not_followed", "/params"},
		{"answer to two Follows", "AcceptFollow", `{"actorUri":"` + bob + `","activityId":"` + bob + `/1"}`, fault.Unprocessable, "invalid_parameter", "/params/activityId"},
		{"message to herself", "SendMessage", `{"recipientUri":"` + string(me) + `","content":"x"}`, fault.Unprocessable, "invalid_parameter", "/params/recipientUri"},
		{"reply to nothing", "Reply", `{"content":"x"}`, fault.Unprocessable, "invalid_parameter", "/params/objectId"},
		{"reply to what is not there", "Reply", `{"objectId":"https://p.example/none","content":"x"}`, fault.NotFound, "", "/params/objectId"},
		{"like of no id", "Like", `{"objectId":"javascript:alert(1)"}`, fault.Unprocessable, "invalid_parameter", "/params/objectId"},
		{"like of an object that claims another server's author", "Like", `{"objectId":"https://p.example/notes/forged"}`, fault.Unprocessable, "invalid_parameter", "/params/objectId"},
		{"boost of what is not public", "Boost", `{"objectId":"` + string(theirs) + `"}`, fault.Forbidden, "not_public", "/params/objectId"},
		{"unlike of what is not liked", "Unlike", `{"objectId":"` + bobsPost + `"}`, fault.NotFound, "not_reacted", "/params/objectId"},
		{"dislike of a note", "Dislike", `{"objectId":"` + bobsPost + `"}`, fault.Unprocessable, "not_reviewable", "/params/objectId"},
		{"like of a sealed message", "Like", `{"objectId":"https://p.example/sealed/1"}`, fault.Unprocessable, "not_for_type", "/params/objectId"},
		{"reply to a sealed message", "Reply", `{"content":"x","objectId":"https://p.example/sealed/1"}`, fault.Unprocessable, "not_for_type", "/params/objectId"},
		{"answer to a sealed message", "CreateNote", `{"content":"x","inReplyTo":"https://p.example/sealed/1"}`, fault.Unprocessable, "not_for_type", "/params/inReplyTo"},
		{"boost of a sealed message", "Boost", `{"objectId":"https://p.example/sealed/1"}`, fault.Unprocessable, "not_for_type", "/params/objectId"},
		{"taking back a dislike of what is liked", "UndoDislike", `{"objectId":"` + string(theirs) + `"}`, fault.NotFound, "not_reacted", "/params/objectId"},
		{"block of herself", "Block", `{"actorUri":"` + string(me) + `"}`, fault.Unprocessable, "invalid_parameter", "/params/actorUri"},
		{"block of a handle that is nobody's", "Block", `{"actorUri":"@nobody@p.example"}`, fault.Unprocessable, "no_such_user", "/params/actorUri"},
		{"unblock of who is not blocked", "Unblock", `{"actorUri":"` + bob + `"}`, fault.NotFound, "not_blocked", "/params/actorUri"},
		{"group without a name", "CreateGroup", `{}`, fault.Unprocessable, "invalid_parameter", "/params/name"},
		{"group whose name is no word", "CreateGroup", `{"name":"close friends"}`, fault.Unprocessable, "invalid_parameter", "/params/name"},
		{"group with a long name", "CreateGroup", `{"name":"` + strings.Repeat("ä", maxGroupName+1) + `"}`, fault.Unprocessable, "invalid_parameter", "/params/name"},
		{"deletion of no group", "DeleteGroup", `{"name":"friends"}`, fault.NotFound, "no_group", "/params/name"},
		{"adding nobody", "AddToGroup", `{"name":"friends"}`, fault.Unprocessable, "invalid_parameter", "/params/actorUri"},
		{"adding to a group without a name", "AddToGroup", `{"actorUri":"` + bob + `"}`, fault.Unprocessable, "invalid_parameter", "/params/name"},
		{"adding to no group", "AddToGroup", `{"name":"friends","actorUri":"` + bob + `"}`, fault.NotFound, "no_group", "/params/name"},
		{"taking out of no group", "RemoveFromGroup", `{"name":"friends","actorUri":"` + bob + `"}`, fault.NotFound, "no_group", "/params/name"},
		{"to no group", "CreateNote", `{"content":"x","to":["` + string(me) + `/groups/019c8052-5f00-4000-8000-000000000001"]}`, fault.Unprocessable, "invalid_parameter", "/params/to"},
		{"to no group's id", "CreateNote", `{"content":"x","cc":["` + string(me) + `/groups/"]}`, fault.Unprocessable, "invalid_parameter", "/params/to"},
		{"update of somebody else's object", "UpdateObject", `{"objectId":"` + string(theirs) + `","content":"x"}`, fault.Forbidden, "not_own_object", "/params/objectId"},
		{"update of nothing", "UpdateObject", `{"objectId":"` + string(theirs) + `"}`, fault.Unprocessable, "invalid_parameter", "/params"},
		{"delete of somebody else's object", "DeleteObject", `{"objectId":"` + string(theirs) + `"}`, fault.Forbidden, "not_own_object", "/params/objectId"},
		{"delete of what is not there", "DeleteObject", `{"objectId":"` + string(me) + `/objects/1"}`, fault.NotFound, "", "/params/objectId"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.token = uuid.New() // a new token each time, because repeated refusals of one token are only counted
			before, sent := len(d.audits()), d.sent()
			_, err := d.dispatch(c.action, c.params)
			e := fault.Of(err)
			if e == nil || e.Kind != c.kind || e.Code != c.code || e.Pointer != c.pointer {
				t.Fatalf("refused with %+v, want kind %d, code %q at %q", e, c.kind, c.code, c.pointer)
			}
			audits := d.audits()
			if len(audits) != before+1 || audits[0].Token != d.token || audits[0].Outcome != fault.Code(err) || len(audits[0].Params) > maxAudited+100 {
				t.Errorf("audited %.300s, want the refusal", audits[0].Params)
			}
			if d.sent() != sent || len(d.events()) != 1 {
				t.Error("the refused action left something")
			}
		})
	}
}

func TestABrokenStoredObjectIsNoFaultOfTheRequest(t *testing.T) {
	t.Parallel()
	d := town(t)
	d.write(func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Objects.Add(ctx, user.Object{ID: uuid.New(), URI: bobsPost, Published: d.Now(), Raw: []byte(`{"type":"Note"}`)})
		return err
	})
	if _, err := d.dispatch("Like", map[string]any{"objectId": bobsPost}); err == nil || fault.KindOf(err) != fault.Internal {
		t.Errorf("Like: %v, want an internal fault", err)
	}
}
