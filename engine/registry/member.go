package registry

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Member is a single value in a user's file, which can be read and set by its key.
type Member struct {
	Key   string // the path of names to it, with dots between them
	Words string // its purpose and the values that it accepts
}

// members lists all members in the order of the file, except outdated ones.
var members = []Member{
	{"profile.name", "the name that people see, at most 100 characters"},
	{"profile.summary", "about the person, at most 5000 characters of plain text"},
	{"profile.icon", "address of a picture, or nothing"},
	{"profile.image", "address of a wide picture for the head of a page, or nothing"},
	{"profile.fields", "at most 16 lines such as `{\"name\":\"Home\",\"value\":\"https://example.org\"}`: the name has 1 to 255 characters, the value at most 2047"},
	{"profile.moved_to", "the account that this one has become, by its id, or nothing: the followers are told of it (see `user move`)"},
	{"profile.aliases", "ids of at most 16 other accounts of the person, which may move here"},
	{"profile.mentions", "where handles in the summary lead; the engine looks them up and writes this"},
	{"follow_policy", "`auto_accept`, or `approval_required`: a Follow waits for the user, for 90 days (1,000 of a domain, 10,000 in all)"},
	{"quotes", "actors that may quote the user's public posts: `anyone`, `followers` or `nobody`"},
	{"collections.followers", "readers of the followers: `public` or `owner`"},
	{"collections.following", "readers of the actors that the user follows: `public` or `owner`"},
	{"messaging.strangers", "fate of private messages of strangers: `requests` (they wait), `drop` or `allow`"},
	{"permissions.insecure_dm", "whose private messages are none of a stranger: a rule such as `{\"any\":[\"following\",\"friendOf\"]}`, of `following` (by the user), `follower`, `friendOf` and `closeFriendOf`; an empty one is met by nobody"},
	{"permissions.see_presence", "which actors are told that the user is there, and types: such a rule, or `{\"all\":[…]}`. Actors of other servers are told of typing in encrypted conversations, and of nothing else"},
	{"permissions.see_read_receipts", "which actors are told what the user has read: such a rule. Actors of other servers are told that of encrypted conversations only"},
	{"permissions.encrypted_chat", "with which actors conversations of two become encrypted: such a rule"},
	{"moderation.muted_actors", "URIs of at most 1000 actors that the user does not want to see, nor be notified of"},
	{"moderation.muted_domains", "at most 1000 domains of whose actors that holds, with everything below them"},
	{"moderation.muted_keywords", "at most 200 words or phrases of 1 to 100 characters: posts of others that have one as a whole word, in any case, are not shown"},
	{"discoverable", "the user may be suggested to others"},
	{"indexable", "public posts may be searched (FEP-5feb)"},
	{"languages", "at most 16 that the user reads, best first, such as `[\"de\",\"en\"]`: posts in several are shown in the first of them"},
}

// Members returns the members of a user's file, in the order of the file.
func Members() []Member { return members }

// Value returns the value of a key: a member, or a part of the file with several members. The
// fault is Invalid if there is no such key.
func (c User) Value(key string) (any, error) {
	v, err := findMember(reflect.ValueOf(&c).Elem(), key)
	if err != nil {
		return nil, err
	}
	return v.Interface(), nil
}

// setValue sets a member to a value that a person wrote: strings are taken as they are, other
// types are read as JSON.
func (c *User) setValue(key, value string) error {
	v, err := findMember(reflect.ValueOf(c).Elem(), key)
	if err != nil {
		return err
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(value)
	case reflect.Bool:
		if value != "true" && value != "false" {
			return badValue("%s: %.60q is neither true nor false", key, value)
		}
		v.SetBool(value == "true")
	case reflect.Slice:
		return setJSON(v, key, value)
	default:
		if v.Type() == reflect.TypeFor[Rule]() {
			return setJSON(v, key, value)
		}
		return badValue("%s holds several members", key).WithHint("set each by itself, such as " + firstBelow(key))
	}
	return nil
}

// setJSON sets a member from JSON.
func setJSON(v reflect.Value, key, value string) error {
	read := reflect.New(v.Type())
	if err := decodeStrictly([]byte(value), read.Interface()); err != nil {
		return badValue("%s: %s", key, fault.Public(err))
	}
	v.Set(read.Elem())
	return nil
}

// findMember returns the part of a configuration at a key.
func findMember(v reflect.Value, key string) (reflect.Value, error) {
	for name := range strings.SplitSeq(key, ".") {
		field, found := fieldOf(v, name)
		if !found {
			return reflect.Value{}, unknownMember(key)
		}
		v = field
	}
	return v, nil
}

// fieldOf returns the field of the struct v whose name in JSON is the parameter name.
func fieldOf(v reflect.Value, name string) (reflect.Value, bool) {
	if v.Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	for f, field := range v.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return field, true
		}
	}
	return reflect.Value{}, false
}

func unknownMember(key string) error {
	keys := make([]string, len(members))
	for i, m := range members {
		keys[i] = m.Key
	}
	err := badValue("there is no member %.60q", key)
	if near := Nearest(key, keys); near != "" {
		return err.WithHint("did you mean " + near + "?")
	}
	return err.WithHint("members are " + strings.Join(keys, ", "))
}

// firstBelow returns the key of the first member below a key, or the key itself if there is
// none.
func firstBelow(key string) string {
	for _, m := range members {
		if strings.HasPrefix(m.Key, key+".") {
			return m.Key
		}
	}
	return key
}

func badValue(format string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, fmt.Sprintf(format, args...))
}

// SetMember sets one member of the file of u to a value that a person wrote: a string as it is,
// true or false, or a list or a rule as JSON. The fault is Invalid if the value is refused, and
// Config if the file is not valid.
func (r *Registry) SetMember(u vocab.Username, key, value string) error {
	return r.UpdateUser(u, func(c *User) error { return c.setValue(key, value) })
}
