package outbox

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// wrong is a call that an action refuses. The field code is its error code in docs/api.md.
type wrong struct {
	why    string // one of foreign, deleted, blocked, unknown and state
	params map[string]any
	code   string
}

// play holds ids of actors and objects for the wrong calls.
type play struct {
	own, private, deleted, gone, blocked, liked string // ids of objects: alice's own, a private one of alice's, deleted, deleted on its server, of a blocked actor, liked by alice
	eve, dan, bob, nobody                       string // ids of actors: eve is blocked, dan a follower, bob a stranger; nobody is an unknown handle
	stream                                      string
}

const noConversation = "019c8052-5f00-7000-8000-000000000001"

// newPlay creates these actors and objects.
func newPlay(d *desk) play {
	d.t.Helper()
	eve := string(d.world.person(d.t, "e.example", "eve", true).ID)
	p := play{eve: eve, dan: dan, bob: bob, nobody: "@nobody@p.example"}
	p.blocked = string(d.world.post("https://e.example/notes/1", vocab.ID(eve), public))
	p.gone = "https://p.example/notes/gone"
	d.world.objects[vocab.ID(p.gone)] = `{"id":"` + p.gone + `","type":"Tombstone","formerType":"Note"}`
	d.must("Block", map[string]any{"actorUri": eve})
	p.own, p.private = string(d.note(map[string]any{"content": "hi"})), string(d.note(map[string]any{"content": "hi", "visibility": "followers"}))
	p.deleted = string(d.note(map[string]any{"content": "hi"}))
	d.must("DeleteObject", map[string]any{"objectId": p.deleted})
	p.liked = bobsPost
	d.must("Like", map[string]any{"objectId": p.liked})
	d.must("CreateGroup", map[string]any{"name": "friends"})
	p.stream = d.made("CreateStream", map[string]any{"name": "Cats"}).Text("id")
	d.owed()
	return p
}

// actor returns the wrong calls of an action on an actor. One names an unknown actor. If the
// parameter blocked gives an error code, another names a blocked actor.
func (p play) actor(name, blocked string, more map[string]any) []wrong {
	calls := []wrong{{"unknown", withAll(more, name, p.nobody), "no_such_user"}}
	if blocked != "" {
		calls = append(calls, wrong{"blocked", withAll(more, name, p.eve), blocked})
	}
	return calls
}

// object returns the wrong calls of an action on an object of any author. They name an object of a
// blocked author, deleted objects, and an unknown one.
func (p play) object(more map[string]any) []wrong {
	return []wrong{{"blocked", withAll(more, "objectId", p.blocked), "blocked"}, {"deleted", withAll(more, "objectId", p.deleted), "gone"},
		{"deleted", withAll(more, "objectId", p.gone), "gone"}, {"unknown", withAll(more, "objectId", "https://p.example/none"), "not_found"}}
}

func withAll(more map[string]any, name string, value any) map[string]any {
	all := map[string]any{name: value}
	for n, v := range more {
		all[n] = v
	}
	return all
}

// calls returns the wrong calls of each action that satisfy the action's schema. schemaCalls
// returns the wrong calls that break the schema.
func (p play) calls() map[string][]wrong {
	type m = map[string]any
	post := func(more m) []wrong {
		return slices.Concat(p.actorIn("to", more), p.actorIn("cc", more), []wrong{
			{"deleted", withAll(more, "inReplyTo", p.deleted), "gone"}, {"blocked", withAll(more, "inReplyTo", p.blocked), "blocked"},
			{"unknown", withAll(more, "inReplyTo", "https://p.example/none"), "not_found"}, {"unknown", withAll(more, "streamTarget", here+"/users/alice/streams/none"), "no_stream"},
			{"state", withAll(withAll(more, "visibility", "followers"), "streamTarget", p.stream), "not_public"},
			{"state", withAll(more, "quote", p.private), "not_public"}, {"deleted", withAll(more, "quote", p.deleted), "gone"}, {"blocked", withAll(more, "quote", p.blocked), "blocked"}})
	}
	friend := m{"relationshipType": "friendOf"}
	return map[string][]wrong{
		"Follow":           append(p.actor("actorUri", "blocked", nil), wrong{"state", m{"actorUri": string(me)}, "invalid_parameter"}),
		"Unfollow":         append(p.actor("actorUri", "not_following", nil), wrong{"state", m{"actorUri": p.bob}, "not_following"}),
		"AcceptFollow":     {{"state", m{"actorUri": p.bob}, "not_followed"}, {"foreign", m{"activityId": "https://p.example/follows/9"}, "not_followed"}, {"blocked", m{"actorUri": p.eve}, "not_followed"}},
		"RejectFollow":     {{"state", m{"actorUri": p.bob}, "not_followed"}, {"foreign", m{"activityId": "https://p.example/follows/9"}, "not_followed"}, {"blocked", m{"actorUri": p.eve}, "not_followed"}},
		"AcceptRequest":    {{"state", m{"actorUri": p.bob}, "no_request"}, {"foreign", m{"activityId": "https://p.example/notes/9"}, "no_request"}, {"blocked", m{"actorUri": p.eve}, "blocked"}},
		"DeclineRequest":   {{"state", m{"actorUri": p.bob}, "no_request"}, {"foreign", m{"activityId": "https://p.example/notes/9"}, "no_request"}},
		"CreateNote":       post(m{"content": "x"}),
		"CreateArticle":    post(m{"content": "x", "title": "x"}),
		"CreateObject":     post(m{"content": "x", "title": "x", "type": "Product"}),
		"CreateStream":     {{"state", m{"name": "a\nb"}, "invalid_parameter"}},
		"DeleteStream":     {{"unknown", m{"streamId": here + "/users/alice/streams/none"}, "no_stream"}, {"foreign", m{"streamId": "https://p.example/streams/1"}, "no_stream"}, {"state", m{"streamId": featured}, "invalid_parameter"}},
		"AddToStream":      {{"foreign", m{"streamId": featured, "objectId": p.liked}, "not_own_object"}, {"deleted", m{"streamId": p.stream, "objectId": p.deleted}, "gone"}, {"state", m{"streamId": p.stream, "objectId": p.private}, "not_public"}, {"unknown", m{"streamId": p.stream, "objectId": "https://p.example/none"}, "not_found"}},
		"RemoveFromStream": {{"state", m{"streamId": p.stream, "objectId": p.own}, "not_in_stream"}, {"deleted", m{"streamId": p.stream, "objectId": p.deleted}, "not_in_stream"}, {"foreign", m{"streamId": "https://p.example/streams/1", "objectId": p.own}, "no_stream"}},
		"Reply":            p.object(m{"content": "x"}),
		"SendMessage": append(p.actor("recipientUri", "blocked", m{"content": "x"}), wrong{"state", m{"recipientUri": string(me), "content": "x"}, "invalid_parameter"},
			wrong{"unknown", m{"conversationId": noConversation, "content": "x"}, "no_conversation"}),
		"CreateConversation": append(p.actor("with", "", nil), wrong{"state", m{"with": string(me)}, "invalid_parameter"}, wrong{"state", m{"groupInfo": "AAAA"}, "bad_group_info"}, wrong{"state", m{"groupInfo": "no base64"}, "invalid_parameter"},
			wrong{"state", m{"with": p.bob, "upgrades": noConversation}, "invalid_parameter"}, wrong{"state", m{"groupInfo": "AAAA", "upgrades": noConversation, "predecessor": noConversation}, "invalid_parameter"}),
		"AddMembers":        {{"unknown", m{"conversationId": noConversation, "commit": "AAAA", "groupInfo": "AAAA"}, "no_conversation"}, {"state", m{"conversationId": noConversation, "commit": "AAAA", "groupInfo": "AAAA", "welcomes": []string{"?"}}, "invalid_parameter"}},
		"RemoveMember":      {{"unknown", m{"conversationId": noConversation, "commit": "AAAA", "groupInfo": "AAAA"}, "no_conversation"}},
		"LeaveConversation": {{"unknown", m{"conversationId": noConversation, "proposal": "AAAA"}, "no_conversation"}},
		"Like":              p.object(nil),
		"Unlike":            {{"state", m{"objectId": p.own}, "not_reacted"}, {"deleted", m{"objectId": p.deleted}, "not_reacted"}},
		"Dislike":           append(p.object(nil)[1:], wrong{"state", m{"objectId": p.liked}, "not_reviewable"}, wrong{"blocked", m{"objectId": p.blocked}, "not_reviewable"}),
		"UndoDislike":       {{"state", m{"objectId": p.liked}, "not_reacted"}, {"deleted", m{"objectId": p.deleted}, "not_reacted"}},
		"Boost":             append(p.object(nil), wrong{"state", m{"objectId": p.private}, "not_public"}),
		"Unboost":           {{"state", m{"objectId": p.liked}, "not_reacted"}, {"deleted", m{"objectId": p.deleted}, "not_reacted"}},
		"UpdateObject":      {{"foreign", m{"objectId": p.liked, "content": "x"}, "not_own_object"}, {"deleted", m{"objectId": p.deleted, "content": "x"}, "gone"}, {"unknown", m{"objectId": "https://p.example/none", "content": "x"}, "not_found"}, {"state", m{"objectId": p.own, "title": "x"}, "invalid_parameter"}},
		"DeleteObject":      {{"foreign", m{"objectId": p.liked}, "not_own_object"}, {"unknown", m{"objectId": "https://p.example/none"}, "not_found"}},
		"RevokeQuote":       {{"state", m{"objectId": p.own}, "not_quoted"}, {"unknown", m{"objectId": "https://p.example/none"}, "not_quoted"}},
		"Block":             append(p.actor("actorUri", "", nil), wrong{"state", m{"actorUri": string(me)}, "invalid_parameter"}),
		"Unblock":           append(p.actor("actorUri", "", nil), wrong{"state", m{"actorUri": p.bob}, "not_blocked"}),
		"CreateGroup":       {{"state", m{"name": "a b"}, "invalid_parameter"}},
		"DeleteGroup":       {{"unknown", m{"name": "none"}, "no_group"}},
		"AddToGroup":        append(p.actor("actorUri", "blocked", m{"name": "friends"}), wrong{"unknown", m{"name": "none", "actorUri": p.bob}, "no_group"}, wrong{"state", m{"name": "friends", "actorUri": string(me)}, "invalid_parameter"}),
		"RemoveFromGroup":   {{"state", m{"name": "friends", "actorUri": p.bob}, "not_in_group"}, {"unknown", m{"name": "none", "actorUri": p.bob}, "no_group"}},
		"MarkRead": {{"unknown", m{"feed": "main", "entryId": "019c8052-5f00-7000-8000-000000000001"}, "no_entry"}, {"foreign", m{"feed": "main", "cursor": "x"}, "invalid_parameter"}, {"state", m{"feed": "tag.cats", "cursor": "x"}, "invalid_parameter"}, {"missing", m{"entryId": noConversation}, "invalid_parameter"},
			{"unknown", m{"conversationId": noConversation, "seq": 1}, "no_conversation"}, {"state", m{"conversationId": noConversation, "feed": "main"}, "invalid_parameter"}, {"state", m{"conversationId": noConversation, "seq": -1}, "invalid_parameter"}, {"state", m{"feed": "main", "cursor": "x", "seq": 1}, "invalid_parameter"}},
		"SendFriendRequest":   append(p.actor("actorUri", "blocked", friend), wrong{"state", withAll(friend, "actorUri", string(me)), "invalid_parameter"}),
		"AcceptFriendRequest": {{"state", m{"actorUri": p.bob}, "no_friend_request"}, {"foreign", m{"offerId": "https://p.example/offers/9"}, "no_friend_request"}},
		"RejectFriendRequest": {{"state", m{"actorUri": p.bob}, "no_friend_request"}, {"foreign", m{"offerId": "https://p.example/offers/9"}, "no_friend_request"}},
		"RemoveRelationship":  {{"state", withAll(friend, "actorUri", p.bob), "not_related"}, {"unknown", withAll(friend, "actorUri", p.nobody), "no_such_user"}},
		"UpdateProfile":       {{"state", m{"name": "a\x1bb"}, "invalid_parameter"}},
	}
}

// actorIn returns the wrong calls for a parameter that is a list of actors.
func (p play) actorIn(name string, more map[string]any) []wrong {
	return []wrong{{"unknown", withAll(more, name, []string{p.nobody}), "no_such_user"}, {"blocked", withAll(more, name, []string{p.eve}), "blocked"}}
}

// state returns digests of the tables in alice's database, except the audit, and the contents of
// her configuration file.
func (d *desk) state() string {
	d.t.Helper()
	sql := dbtest.SQL(d.t, d.c, d.alice)
	rows, err := sql.QueryContext(d.t.Context(), `SELECT tablename, (xpath('//md5/text()', query_to_xml(format('SELECT md5(coalesce(string_agg(t::text, '','' ORDER BY t::text), '''')) AS md5 FROM %I t', tablename), false, true, '')))[1]::text
		FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'audit' ORDER BY tablename`)
	if err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	var b strings.Builder
	for rows.Next() {
		var table, digest string
		if err := rows.Scan(&table, &digest); err != nil {
			d.t.Fatal(err)
		}
		fmt.Fprintln(&b, table, digest)
	}
	if err := rows.Err(); err != nil {
		d.t.Fatal(err)
	}
	file, err := d.files.ReadUser(d.alice)
	if err != nil {
		d.t.Fatal(err)
	}
	return b.String() + string(file)
}

// Each action refuses its wrong calls with a documented code. A refused call changes nothing.
func TestWrongCallsOfEveryActionChangeNothing(t *testing.T) {
	t.Parallel()
	d := town(t)
	calls := newPlay(d).calls()
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	const key = "once"
	before := d.state()
	if _, err := d.keyed(key, "CreateNote", map[string]any{"content": "hi"}); err != nil || d.state() == before {
		t.Fatalf("a note that is written is not seen: %v", err)
	}
	for _, of := range Describe() {
		if calls[of.Action] == nil {
			t.Errorf("there is no wrong call of %s", of.Action)
		}
		before := d.state()
		for _, c := range slices.Concat(calls[of.Action], schemaCalls(t, of)) {
			d.token = uuid.New() // a new token each time, because repeated refusals of one token are only counted
			_, err := d.dispatch(of.Action, c.params)
			if got := fault.Code(err); err == nil || got != c.code {
				t.Errorf("%s, %s, with %v: %v (%s), want %s", of.Action, c.why, short(c.params), err, got, c.code)
			}
			if !strings.Contains(string(page), "`"+c.code+"`") {
				t.Errorf("%s is refused with %s, which docs/api.md has not", of.Action, c.code)
			}
		}
		_, err := d.keyed(key, of.Action, exampleParams(t, of))
		if got := fault.Code(err); err == nil || got != "idempotency_key_reuse" {
			t.Errorf("%s under the key of another one: %v (%s)", of.Action, err, got)
		}
		if after := d.state(); after != before {
			t.Errorf("wrong calls of %s change\n%s to\n%s", of.Action, before, after)
		}
	}
}

// schemaCalls returns the wrong calls that break an action's schema.
func schemaCalls(t *testing.T, d Description) (calls []wrong) {
	t.Helper()
	good := exampleParams(t, d)
	add := func(why string, params vocab.Doc) {
		calls = append(calls, wrong{why, params, "invalid_parameter"})
	}
	required, _ := d.Params["required"].([]any)
	for _, name := range required {
		add("missing", without(good, name.(string)))
	}
	add("extra", with(good, "more", "x"))
	for name, part := range d.Params["properties"].(vocab.Doc) {
		if good[name] == nil {
			continue
		}
		add("wrong type", with(good, name, 7))
		if most, bounded := part.(vocab.Doc)["maxLength"].(int); bounded {
			add("too long", with(good, name, "https://a.example/"+strings.Repeat("a", most)))
		}
	}
	return calls
}

func short(params map[string]any) string {
	b, err := json.Marshal(params)
	if err != nil {
		return err.Error()
	}
	return string(b[:min(len(b), 200)])
}
